"""Tests that run programs in a folder of their own."""
import gzip
import os
import tempfile
import unittest


class Folder(unittest.TestCase):
    """Tests with one folder for all of the class."""

    @classmethod
    def setUpClass(cls):
        cls.make_folder(cls.addClassCleanup)

    @classmethod
    def make_folder(cls, add_cleanup):
        """Makes a new folder, in which at() and write() work from now on, until add_cleanup deletes it."""
        folder = tempfile.TemporaryDirectory()
        add_cleanup(folder.cleanup)
        cls.folder = folder.name

    @classmethod
    def at(cls, name):
        """The path of a file in the folder."""
        return os.path.join(cls.folder, name)

    @classmethod
    def write(cls, name, text):
        """The path of a new file with the text, compressed if the name ends with .gz."""
        with (gzip.open if name.endswith(".gz") else open)(cls.at(name), "wt", encoding="utf-8") as stream:
            stream.write(text)
        return cls.at(name)

    def error_of(self, result):
        """The error of a finished program that has to fail. Its output is text."""
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertTrue(result.stderr.startswith("error: "), result.stderr)
        return result.stderr[len("error: "):].rstrip("\n")
