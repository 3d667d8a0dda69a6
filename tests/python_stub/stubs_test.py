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

# The second one is that of docs/python.md.
PROGRAMS = [os.path.abspath(name) for name in ("python_stub/examples/ernie.py", "tests/python_stub/lenet.py")]

# What stubs can't say of classes that pybind11 makes.
UNAVOIDABLE = ("is inconsistent, metaclass differs",
               "__init__ is inconsistent, stub does not have *args argument \"args\"")

RIGHT = """
from typing import Dict, Iterator
import numpy
import skiff

def feeds() -> Dict[str, numpy.ndarray]:
    return {"x": numpy.zeros((2, 4))}

def batches(epoch: int) -> Iterator[Dict[str, numpy.ndarray]]:
    yield feeds()

def by_variable(x: skiff.Variable) -> Dict[skiff.Variable, numpy.ndarray]:
    return {x: numpy.zeros((2, 4))}

executor = skiff.Executor()
main = skiff.default_main_program()
executor.run(main, feeds())[0].mean()
executor.run(main, by_variable(main.block().variable("x")), ["y"], return_tensors=True)[0].lod
step = executor.compile(main)
step.run(feeds())
step.bind(feeds(), [main.block().variable("x"), "y"]).step()
for reader in (skiff.ArrayReader(feeds()), skiff.IterableReader(batches, 1),
               skiff.IterableReader(skiff.ArrayReader(feeds()).epoch, 1)):
    for batch in reader.epoch(0):
        step.run(batch)
"""

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
        for name, text in (("right.py", RIGHT), ("wrong.py", WRONG)):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as stream:
                stream.write(text)
        lines = self.output("mypy", "--cache-dir", self.folder, "--check-untyped-defs", *PROGRAMS, "right.py",
                            "wrong.py")
        places = [":".join(line.split(":")[:2]) for line in lines if ": error:" in line]
        self.assertEqual(sorted(set(places)), sorted(f"wrong.py:{line}" for line in (7, 8, 9, 10, 11)))


if __name__ == "__main__":
    unittest.main()
