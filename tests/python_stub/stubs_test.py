"""The stubs are right: mypy accepts them, they say what the package has, and find mistakes in programs."""
import ast
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest

from tests.python_stub.package import FOLDER, skiff

if importlib.util.find_spec("mypy") is None:
    raise unittest.SkipTest("no mypy here (python3-mypy)")

# The last two are those of docs/python.md.
PROGRAMS = [os.path.abspath(name) for name in ("python_stub/examples/ernie.py", "tests/python_stub/lenet.py",
                                               "tests/python_stub/train_on_ranks.py")]

# What stubs can't say of classes that pybind11 makes, and of the plug-in for MPI, which is no module.
UNAVOIDABLE = ("is inconsistent, metaclass differs",
               "__init__ is inconsistent, stub does not have *args argument \"args\"",
               "skiff.libskiff_mpi failed to find stubs")

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
executor.scope[main.block().variable("x")].mean()
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


def parts_of(text):
    """A list of parameters, split at the commas outside of brackets and quotes."""
    parts, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        else:
            depth += (character in "([{<") - (character in ")]}>")
        if character == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def parameters_of_line(line):
    """[(name, kind, whether there is a default)] of pybind11's "name(self: Class, x: int = 3) -> int"."""
    found, kind = [], "positional"
    for part in parts_of(line[line.index("(") + 1:line.rindex(") ->")]):
        if part == "*":
            kind = "keyword"
        elif part.startswith("*"):
            found.append(("", "**" if part.startswith("**") else "*", False))
        else:
            name, _, rest = part.partition(":")
            # A C++ function whose parameters have no names. Python passes them by place.
            found.append(("" if re.fullmatch(r"arg\d+", name) else name, kind, " = " in rest))
    return found


def parameters_of_stub(function):
    """The same of a function of a stub."""
    arguments = function.args
    positional = arguments.posonlyargs + arguments.args
    first_default = len(positional) - len(arguments.defaults)
    found = [(argument.arg, "positional", i >= first_default) for i, argument in enumerate(positional)]
    found += [("", "*", False)] if arguments.vararg else []
    found += [(argument.arg, "keyword", default is not None)
              for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    return found + ([("", "**", False)] if arguments.kwarg else [])


def agree(bound, stub):
    return len(bound) == len(stub) and all(
        (one[0] in ("", other[0])) and one[1:] == other[1:] for one, other in zip(bound, stub))


def signatures(docstring, name):
    """The signatures in a docstring of pybind11: the first line, or the numbered ones of overloads."""
    lines = (docstring or "").splitlines()
    pattern = re.compile(r"(\d+\. )?" + re.escape(name) + r"\(.*\) -> ")
    if lines[1:2] == ["Overloaded function."]:
        return [line for line in lines if re.match(r"\d+\. ", line) and pattern.match(line)]
    return lines[:1] if lines and pattern.match(lines[0]) else []


def functions_of_stub(path):
    """{(class or "", name): [function]} of what isn't a property."""
    with open(path, encoding="utf-8") as stream:
        body = ast.parse(stream.read()).body
    scopes = [("", body)] + [(node.name, node.body) for node in body if isinstance(node, ast.ClassDef)]
    found = {}
    for scope, nodes in scopes:
        for node in nodes:
            if isinstance(node, ast.FunctionDef) and not any(
                    ast.unparse(decorator) == "property" for decorator in node.decorator_list):
                found.setdefault((scope, node.name), []).append(node)
    return found


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

    def test_have_the_parameters_of_what_is_bound(self):
        # stubtest can't see these: pybind11 writes them into docstrings only.
        seen = set()
        for module in (skiff._skiff, skiff.distributed):  # pylint: disable=protected-access
            stub_file = os.path.join(FOLDER, module.__name__.replace(".", "/") + ".pyi")
            for (scope, name), stubs in functions_of_stub(stub_file).items():
                bound = getattr(getattr(module, scope) if scope else module, name)
                for line in signatures(bound.__doc__, name):
                    seen.add((scope, name))
                    with self.subTest(scope=scope, name=name):
                        self.assertTrue(any(agree(parameters_of_line(line), parameters_of_stub(stub))
                                            for stub in stubs),
                                        line + "\n" + "\n".join(ast.unparse(stub) for stub in stubs))
        self.assertLessEqual({("Executor", "compile"), ("CompiledProgram", "run"), ("ArrayReader", "__init__"),
                              ("Trainer", "__init__"), ("Scope", "__getitem__"), ("", "save_checkpoint"),
                              ("", "all_gather"), ("ShardedReader", "__init__"), ("Variable", "__add__"), ("Program", "from_bytes")}, seen)

    def test_comparison_finds_other_parameters(self):
        line = "f(self: skiff.A, x: Dict[str, int] = {'a, b': 1}, *, y: A = <A object at 0x1>, z: int) -> None"
        for stub, same in (("self, x=..., *, y=..., z", True), ("self, x, *, y=..., z", False),
                           ("self, x=..., *, y, z", False), ("self, x=..., *, z, y=...", False),
                           ("self, x=..., y=..., z=...", False), ("self, w=..., *, y=..., z", False),
                           ("self, x=..., *, y=...", False), ("self, *x, y=..., z", False)):
            function = ast.parse(f"def f({stub}): ...").body[0]
            self.assertEqual(agree(parameters_of_line(line), parameters_of_stub(function)), same, stub)

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
