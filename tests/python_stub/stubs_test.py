"""The stubs are right: mypy accepts them, they say what the package has, and find mistakes in programs."""
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

from tests.python_stub.package import FOLDER

if importlib.util.find_spec("mypy") is None:
    raise unittest.SkipTest("no mypy here (python3-mypy)")

# What stubs can't say of classes that pybind11 makes.
UNAVOIDABLE = ("is inconsistent, metaclass differs",
               "__init__ is inconsistent, stub does not have *args argument \"args\"")

WRONG = """
import skiff
from skiff import layers

x = layers.data("x", [-1, 4])
layers.relu(x)
layers.fc(x)  # line 7
layers.fc(x, 3, activation="relu")  # line 8
layers.pool2d(x, kernel="3")  # line 9
skiff.optimizer.LarsMomentum(policy="all")  # line 10
layers.top_k(x, 1).places  # line 11
"""


class Stubs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def output(self, *arguments):
        """The lines that a module of Python prints."""
        done = subprocess.run([sys.executable, "-m", *arguments], stdout=subprocess.PIPE, text=True, check=False,
                              cwd=self.folder, env={**os.environ, "MYPYPATH": FOLDER, "PYTHONPATH": FOLDER})
        return done.stdout.splitlines()

    def test_say_what_the_package_has(self):
        lines = self.output("mypy.stubtest", "skiff", "--concise")
        self.assertEqual([line for line in lines if not line.endswith(UNAVOIDABLE)], [])
        # It has looked at everything.
        self.assertIn("skiff.optimizer.AveragedVariables is inconsistent, metaclass differs", lines)

    def test_fit_programs_and_find_mistakes(self):
        wrong = os.path.join(self.folder, "wrong.py")
        with open(wrong, "w", encoding="utf-8") as stream:
            stream.write(WRONG)
        example = os.path.join(os.path.dirname(FOLDER), "python_stub/examples/ernie.py")
        lines = self.output("mypy", "--cache-dir", self.folder, "--check-untyped-defs", example, wrong)
        places = [":".join(line.split(":")[:2]) for line in lines if ": error:" in line]
        self.assertEqual(sorted(set(places)), sorted(f"wrong.py:{line}" for line in (7, 8, 9, 10, 11)))


if __name__ == "__main__":
    unittest.main()
