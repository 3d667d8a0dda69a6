"""Runs the programs of models/char_rnn as a user does: trains, resumes, writes texts, makes mistakes."""
import os
import random
import re
import subprocess
import unittest

from tests.models.common.folder import Folder

SMALL = ("--embedding=16", "--hidden=48", "--batch_size=16", "--steps=32")
# What a word ends with, its first letter tells, which is beyond the reach of trigrams.
WORDS = ("booom", "cooon", "dooop", "fooor", "gooos", "hooot", "koooz", "looox")


def run(name, *arguments, cwd=None):
    command = [os.path.abspath("models/char_rnn/" + name), *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, cwd=cwd)


class Programs(Folder):
    def refused(self, name, *arguments):
        """The error of a program that has to fail."""
        return self.error_of(run(name, *arguments))


class Trained(Programs):
    """A model that has read a text of a few words in a random order."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        choose = random.Random(3)
        text = cls.write("words.txt", " ".join(choose.choice(WORDS) for _ in range(8000)))
        cls.flags = ("--data=" + text, "--epochs=8", "--output_dir=" + cls.at("run"), *SMALL)
        cls.model = "--model=" + cls.at("run/model")
        result = run("train", *cls.flags)
        assert result.returncode == 0, result.stderr
        cls.output = result.stdout

    def test_falls_below_the_baselines(self):
        found = re.search(r"^best validation loss (\S+) in epoch \d+; bigrams (\S+), trigrams (\S+)$", self.output,
                          re.MULTILINE)
        self.assertIsNotNone(found, self.output)
        loss, bigrams, trigrams = (float(value) for value in found.groups())
        self.assertLess(trigrams, bigrams)
        self.assertLess(loss, 0.6 * trigrams)

    def test_writes_words_that_it_has_read(self):
        result = run("generate", self.model, "--prompt=booom ", "--length=350")
        self.assertEqual(result.returncode, 0, result.stderr)
        words = result.stdout.split()[:-1]
        known = sum(word in WORDS for word in words)
        self.assertGreater(known, 0.95 * len(words), result.stdout)
        self.assertEqual(run("generate", self.model, "--prompt=booom ", "--length=350").stdout, result.stdout)
        self.assertNotEqual(run("generate", self.model, "--prompt=booom ", "--length=350", "--seed=2").stdout,
                            result.stdout)

    def test_mistakes_in_generate(self):
        self.assertEqual(self.refused("generate", self.model, "--prompt=boo?"),
                         'the prompt: character 3, "?", is none of the 18 of the alphabet')
        self.assertIn("the prompt is empty", self.refused("generate", self.model, "--prompt="))
        self.assertIn("temperature = 0", self.refused("generate", self.model, "--prompt=a", "--temperature=0"))
        self.assertIn("no_such_model", self.refused("generate", "--model=" + self.at("no_such_model")))

    def test_resumes_with_the_same_text_wherever_it_is(self):
        with open(self.at("words.txt"), encoding="utf-8") as stream:
            text = stream.read()
        hash_of = lambda output: re.search(r"^weights (\S+)$", output, re.MULTILINE)[1]
        for other in ("./words.txt", self.write("copy.txt", text)):
            result = run("train", *self.flags, "--data=" + other, "--resume", cwd=self.folder)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(hash_of(result.stdout), hash_of(self.output))
        self.assertRegex(self.refused("train", *self.flags, "--data=" + self.write("other.txt", text + "!"), "--resume"),
                         r"the checkpoint was made with data \(contents\) = %d bytes with CRC-32 [0-9a-f]{8}, but now it "
                         r"is %d bytes with CRC-32 " % (len(text), len(text) + 1))
        self.assertIn("made with data = FILE, but now it is world:",
                      self.refused("train", *self.flags, "--data=world", "--resume"))

    def test_another_network_does_not_resume(self):
        for flag in ("--cell=gru", "--loop=while", "--steps=16", "--hidden=8"):
            self.assertIn(flag[2:].partition("=")[0], self.refused("train", *self.flags, flag, "--resume"))


class Mistakes(Programs):
    def test_texts_that_give_no_batch(self):
        empty = self.write("empty.txt", "")
        self.assertEqual(self.refused("train", "--data=" + empty), empty + ": the text is empty, expected characters")
        short = self.write("short.txt", "a short text")
        self.assertEqual(self.refused("train", "--data=" + short),
                         short + ", training part: a text of 11 characters is too short for batch_size = 32 streams: "
                         "expected at least 33 characters")
        self.assertIn("no_such_file", self.refused("train", "--data=" + self.at("no_such_file")))

    def test_flags(self):
        self.assertIn('cell = "rnn", expected lstm or gru', self.refused("train", "--cell=rnn"))
        self.assertIn("steps = 0: expected at least 1", self.refused("train", "--steps=0"))
        for name in ("train", "generate"):
            output = run(name, "--help").stdout
            for flag in {"train": ("cell", "data", "steps", "loop"), "generate": ("prompt", "top_k")}[name]:
                self.assertIn("--" + flag, output)


if __name__ == "__main__":
    unittest.main()
