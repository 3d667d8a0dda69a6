"""Runs the programs of models/text_classifier as a user does: trains on a file, classifies lines."""
import os
import subprocess
import unittest

from tests.models.common.folder import Folder

MARK = "\ufeff"


def run(name, *arguments, text=None):
    command = [os.path.abspath("models/text_classifier/" + name), *arguments]
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


class Trained(Folder):
    """A model of texts in a file that begins with a byte order mark."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        texts = cls.write("texts.tsv", MARK + "0\tbad film\n1\tgood film\n" * 20)
        result = run("train", "--data=" + texts, "--epochs=1", "--threads=1", "--embedding=4", "--hidden=4",
                     "--batch_size=8", "--output_dir=" + cls.at("run"))
        assert result.returncode == 0, result.stderr
        cls.model = "--model=" + cls.at("run/model")

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
