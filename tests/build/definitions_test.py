"""Tests that tools/definitions.py finds the file that lacks its function."""
import os
import subprocess
import sys
import unittest

from tools.definitions import mistake

OP = """
void Unrelated(int);
namespace skiff {
void RegisterRelu(OpRegistry& registry) {}
}
"""


def write(name, text):
    path = os.path.join(os.environ["TEST_TMPDIR"], name)
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)
    return path


class Definitions(unittest.TestCase):
    def test_accepts_the_function_also_by_its_full_name(self):
        self.assertIsNone(mistake("relu.cc", OP, "RegisterRelu", "page.md"))
        self.assertIsNone(mistake("relu.cc", "void skiff::RegisterRelu(OpRegistry&) {}", "RegisterRelu", "page.md"))

    def test_names_what_it_expected_and_what_it_found(self):
        self.assertEqual(mistake("relu6.cc", OP, "RegisterRelu6", "page.md"),
                         "relu6.cc: expected a definition of `void RegisterRelu6(…)`, as the file's name asks for; "
                         "found RegisterRelu (page.md)")
        self.assertIn("found none such", mistake("relu.cc", "  // void RegisterRelu()", "RegisterRelu", "page.md"))

    def test_wants_a_comment_on_the_topic_first(self):
        described = "// relu: max(x, 0)\n" + OP
        self.assertIsNone(mistake("relu.cc", described, "RegisterRelu", "page.md", "relu"))
        for text in (OP, "// relu6: a comment\n" + OP):
            self.assertEqual(mistake("relu.cc", text, "RegisterRelu", "page.md", "relu"),
                             "relu.cc: expected the file to open with a comment `// relu: …`, the formula and its "
                             "source (page.md)")

    def test_wants_the_formula_of_the_name(self):
        formula = "// relu: max(x, 0)\nstruct ReluFormula {\n};\n"
        self.assertIsNone(mistake("relu-inl.h", formula, "struct ReluFormula", "page.md", "relu"))
        self.assertEqual(mistake("relu6-inl.h", formula, "struct Relu6Formula", "page.md"),
                         "relu6-inl.h: expected a definition of `struct Relu6Formula`, as the file's name asks for; "
                         "found struct ReluFormula (page.md)")

    def test_writes_the_list_only_if_nothing_is_missing(self):
        content, output = write("content", "list"), os.path.join(os.environ["TEST_TMPDIR"], "output")
        source = write("relu.cc", OP)
        call = lambda function: subprocess.run(
            [sys.executable, "tools/definitions.py", content, output, "page.md", source, function],
            stderr=subprocess.PIPE, text=True)
        failed = call("RegisterTanh")
        self.assertEqual(failed.returncode, 1)
        self.assertIn("RegisterTanh", failed.stderr)
        self.assertFalse(os.path.exists(output))
        self.assertEqual(call("RegisterRelu:relu").returncode, 1)
        self.assertEqual(call("RegisterRelu").returncode, 0)
        with open(output, encoding="utf-8") as stream:
            self.assertEqual(stream.read(), "list")
