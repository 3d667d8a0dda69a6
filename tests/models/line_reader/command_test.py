"""Runs the programs of models/line_reader as a user does: trains, reads generated lines and files."""
import os
import subprocess
import unittest

from tests.models.common.folder import Folder


def run(name, *arguments):
    command = [os.path.abspath("models/line_reader/" + name), *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def pgm(columns):
    """A PGM image of 16 rows of these bytes."""
    return b"P5 %d 16 255\n" % len(columns) + bytes(columns) * 16


class Trained(Folder):
    """A model of generated lines."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.output = run("train", "--lines=16", "--validation_lines=8", "--batch_size=8", "--epochs=1", "--threads=1",
                         "--filters=2", "--hidden=4", "--output_dir=" + cls.at("run"))
        assert cls.output.returncode == 0, cls.output.stderr
        cls.model = "--model=" + cls.at("run/model")

    def write_image(self, name, columns):
        with open(self.at(name), "wb") as stream:
            stream.write(pgm(columns))
        return self.at(name)

    def test_training_reports_the_error_rate_and_what_a_constant_gets(self):
        self.assertIn("character_error_rate", self.output.stdout)
        self.assertIn("most frequent character", self.output.stdout)

    def test_generated_lines_are_shown_with_text_and_reading(self):
        result = run("predict", self.model, "--lines=2")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout.count("  text  \""), 2)
        self.assertEqual(result.stdout.count("  read  \""), 2)
        self.assertEqual(result.stdout, run("predict", self.model, "--lines=2").stdout)

    def test_each_image_has_a_line(self):
        paths = [self.write_image("a.pgm", [255, 0] * 12), self.write_image("b.pgm", [0, 255, 255] * 20)]
        result = run("predict", self.model, "--images=" + ",".join(paths), "--beam=3")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual([line.split("  ")[0] for line in result.stdout.splitlines()], paths)

    def test_mistakes_are_told(self):
        self.assertIn("lines", self.error_of(run("predict", self.model, "--images=x.pgm", "--lines=2")))
        self.assertIn("x.pgm", self.error_of(run("predict", self.model, "--images=x.pgm")))
        image = self.write_image("c.pgm", [0] * 8)
        self.assertIn("beam_width = 0", self.error_of(run("predict", self.model, "--images=" + image, "--beam=0")))

    def test_trains_on_a_list_and_names_its_mistakes(self):
        self.write_image("d.pgm", [255, 0] * 12)
        texts = self.write("list.tsv", "d.pgm\tgo\n" * 8)
        flags = ("--epochs=1", "--threads=1", "--filters=2", "--hidden=4", "--batch_size=4",
                 "--output_dir=" + self.at("run_on_list"))
        result = run("train", "--data=" + texts, *flags)
        self.assertEqual(result.returncode, 0, result.stderr)
        wrong = self.write("wrong.tsv", "d.pgm\tgo\nd.pgm go\n")
        self.assertIn("wrong.tsv:2: expected the path", self.error_of(run("train", "--data=" + wrong, *flags)))


if __name__ == "__main__":
    unittest.main()
