"""Runs the programs of models/text_classifier as a user does: trains on a file, classifies lines."""
import os
import subprocess
import tempfile
import unittest

MARK = "\ufeff"


def run(name, *arguments, text=None):
    command = [os.path.abspath("models/text_classifier/" + name), *arguments]
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


class Trained(unittest.TestCase):
    """A model of texts in a file that begins with a byte order mark."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        texts = os.path.join(folder.name, "texts.tsv")
        with open(texts, "w", encoding="utf-8") as stream:
            stream.write(MARK + "0\tbad film\n1\tgood film\n" * 20)
        output_dir = os.path.join(folder.name, "run")
        result = run("train", "--data=" + texts, "--epochs=1", "--threads=1", "--embedding=4", "--hidden=4",
                     "--batch_size=8", "--output_dir=" + output_dir)
        assert result.returncode == 0, result.stderr
        cls.model = "--model=" + os.path.join(output_dir, "model")

    def answers(self, text):
        result = run("predict", self.model, text=text)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout.splitlines()

    def test_each_line_has_an_answer(self):
        answers = self.answers("good film\n\n   \nbad")
        self.assertEqual([answer.split(" %  ")[1] for answer in answers], ["good film", "", "   ", "bad"])
        self.assertEqual(self.answers(""), [])

    def test_marks_and_line_ends_of_other_systems_are_no_text(self):
        self.assertEqual(self.answers(MARK + "good film\r\nbad\r\n"), self.answers("good film\nbad\n"))


if __name__ == "__main__":
    unittest.main()
