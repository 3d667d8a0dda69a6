"""Runs the programs of models/tagger as a user does: trains on files, tags lines."""
import os
import subprocess
import unittest

from tests.models.common.folder import Folder

SENTENCE = "%s B-PER\nmet O\n%s B-ORG\ngroup I-ORG\n\n"


def run(name, *arguments, text=None):
    command = [os.path.abspath("models/tagger/" + name), *arguments]
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


class Trained(Folder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        names = ["karon", "tolmar", "belmir", "savin"]
        pairs = [(a, b) for a in names for b in names] * 3
        cls.write("train.txt", "".join(SENTENCE % pair for pair in pairs))
        cls.write("valid.txt", SENTENCE % ("karon", "lida"))
        cls.flags = ["--data=conll:" + cls.at(""), "--epochs=8", "--threads=1", "--embedding=8", "--hidden=8",
                     "--batch_size=8", "--learning_rate=0.02"]
        cls.result = run("train", *cls.flags, "--output_dir=" + cls.at("run"))
        assert cls.result.returncode == 0, cls.result.stderr
        cls.model = "--model=" + cls.at("run/model")

    def answers(self, text):
        result = run("predict", self.model, text=text)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout.splitlines()

    def test_the_training_reports_f1(self):
        self.assertIn("48 to train, 1 to validate, 2 types of entities", self.result.stdout)
        self.assertIn("F1 100.00 %", self.result.stdout)

    def test_each_line_has_an_answer(self):
        self.assertEqual(self.answers("savin met karon group\n\n  tolmar   met lida group"),
                         ["[PER savin] met [ORG karon group]", "", "[PER tolmar] met [ORG lida group]"])
        result = run("predict", self.model, "--text=karon met belmir group")
        self.assertEqual(result.stdout, "[PER karon] met [ORG belmir group]\n")

    def test_mistakes_in_files_are_told(self):
        os.mkdir(self.at("other"))
        self.write("other/train.txt", "karon\n")
        result = run("train", "--data=conll:" + self.at("other"), "--output_dir=" + self.at("none"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("train.txt:1 has a single column", result.stderr)


if __name__ == "__main__":
    unittest.main()
