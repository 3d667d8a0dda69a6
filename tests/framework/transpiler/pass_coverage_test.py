"""Every pass of default_pipelines.txt has tests of its own."""
import glob
import os
import re
import unittest

from tools.pass_list import camel_case, read_pipelines

FOLDER = "tests/framework/transpiler"
PIPELINES = "framework/transpiler/default_pipelines.txt"


def read(path):
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def untested(names, sources):
    """The passes after which neither a suite nor a case of the sources is named."""
    titles = [title for text in sources for title in re.findall(r"\bTEST(?:_F|_P)?\((\w+),\s*(\w+)\)", text)]
    return [name for name in names
            if not any(part.startswith(camel_case(name)) for title in titles for part in title)]


class PassCoverage(unittest.TestCase):
    def test_every_pass_has_tests(self):
        mistakes = []
        names = [name for _, name, _ in read_pipelines(PIPELINES, read(PIPELINES), mistakes)]
        self.assertEqual(mistakes, [])
        sources = [read(path) for path in sorted(glob.glob(os.path.join(FOLDER, "*_test.cc")))]
        self.assertGreater(len(sources), 0, "no tests found in " + FOLDER)
        for name in untested(names, sources):
            with self.subTest(name):
                self.fail(f"the pass {name} has no test: expected {FOLDER}/{name}_pass_test.cc with "
                          f"TEST({camel_case(name)}Pass, …)")

    def test_finds_the_pass_without_a_test(self):
        source = "TEST(DeadCodePass, DropsIt) {}\nTEST_F(PlanPassTest, LayoutKeepsIt) {}"
        self.assertEqual(untested(["dead_code", "layout", "memory_reuse"], [source]), ["memory_reuse"])
