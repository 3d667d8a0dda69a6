"""Tests what the generator reads from headers, and what it refuses."""
import unittest

from python_stub.declarations import DeclarationError, parse
from python_stub.generate import Table, emit_stub, snake_case

HEADER = '''// Losses of all kinds.
//
// More about them.
#pragma once

#include <string>

namespace skiff::layers {

using Site = std::source_location;
inline constexpr const char* kName = "n";

struct HuberOptions {
  enum class Mode { kMean, kSumOfAll } mode = Mode::kSumOfAll;
  // What is
  // ignored.
  std::vector<int64_t> axes = {};
  float delta = 1e-3f;  // where the line begins
  std::optional<int64_t> limit;
  ParamAttr attr = {};
};
// The loss. Throws an
// Error (kInvalidArgument) for no x.
Variable HuberLoss(const Variable& x, const std::string& name = "huber",
                   const HuberOptions& options = {}, Site site = Site::current());
Variable OtherLoss(const std::vector<Variable>& xs, Site site = Site::current());

Variable Bare(const Variable& x, Site site = Site::current());

}  // namespace skiff::layers
'''


def parsed(body, namespace="skiff::layers"):
    return parse("a.h", f"// A.\n#pragma once\n\nnamespace {namespace} {{\n\n{body}\n\n}}  // namespace {namespace}\n")


def table(body, namespace="skiff::layers"):
    return Table([parsed(body, namespace)], {})


class Declarations(unittest.TestCase):
    def setUp(self):
        self.header = parse("loss.h", HEADER)
        self.by_name = {declared.name: declared for declared in self.header.declarations}

    def test_have_their_place_and_the_comment_of_their_group(self):
        self.assertEqual(list(self.by_name), ["HuberOptions", "HuberLoss", "OtherLoss", "Bare"])
        self.assertEqual(self.header.doc, "Losses of all kinds.\n\nMore about them.")
        loss = self.by_name["HuberLoss"]
        self.assertEqual((str(loss.place), loss.place.namespace), ("loss.h:24", "skiff::layers"))
        self.assertEqual(loss.doc, "The loss. Throws an Error (kInvalidArgument) for no x.")
        self.assertEqual(self.by_name["OtherLoss"].doc, loss.doc)
        self.assertEqual(self.by_name["Bare"].doc, "")

    def test_of_functions_have_parameters(self):
        parameters = self.by_name["HuberLoss"].parameters
        self.assertEqual([(p.type, p.name, p.default) for p in parameters],
                         [("const Variable&", "x", None), ("const std::string&", "name", '"huber"'),
                          ("const HuberOptions&", "options", "{}"), ("Site", "site", "Site::current()")])

    def test_of_structs_have_fields(self):
        options = self.by_name["HuberOptions"]
        self.assertEqual([(f.type, f.name, f.default, f.doc) for f in options.fields],
                         [("Mode", "mode", "Mode::kSumOfAll", ""),
                          ("std::vector<int64_t>", "axes", "{}", "What is ignored."),
                          ("float", "delta", "1e-3f", "where the line begins"),
                          ("std::optional<int64_t>", "limit", None, ""), ("ParamAttr", "attr", "{}", "")])
        self.assertEqual([(e.name, e.values) for e in options.enums], [("Mode", ["kMean", "kSumOfAll"])])

    def test_that_are_not_understood_are_errors_with_their_line(self):
        for body, line in (("template <class T>\nT F(T x);", 6), ("Variable F(const Variable& x) { return x; }", 6),
                           ("struct A {\n  int x[3];\n};", 7), ("Variable F(int (*f)(int));", 6),
                           ("Variable F(const Variable& x", 6)):
            with self.subTest(body):
                with self.assertRaisesRegex(DeclarationError, rf"^a\.h:{line}: found "):
                    parsed(body)


class Names(unittest.TestCase):
    def test_are_snake_case(self):
        for name, expected in (("Fc", "fc"), ("Conv2dTranspose", "conv2d_transpose"), ("PNorm", "p_norm"),
                               ("SquaredL2Norm", "squared_l2_norm"), ("TopK", "top_k"), ("Assert", "assert_"),
                               ("L1Decay", "l1_decay"), ("Relu6", "relu6")):
            self.assertEqual(snake_case(name), expected)


class Bindings(unittest.TestCase):
    def call(self, body, name="f"):
        return table(body).bindings[("layers", "", name)].calls[0]

    def test_of_options_are_named_arguments(self):
        struct = HEADER[HEADER.index("struct"):HEADER.index("// The loss")]
        call = self.call(struct + "Variable F(const Variable& x, const HuberOptions& o, bool flag = true);")
        self.assertEqual([(p.name, p.annotation, p.default, p.is_keyword) for p in call.parameters],
                         [("x", "Variable", None, False), ("flag", "bool", "True", False),
                          ("mode", 'Literal["mean", "sum_of_all"]', '"sum_of_all"', True),
                          ("axes", "Sequence[int]", "()", True), ("delta", "float", "1e-3", True),
                          ("limit", "int | None", "None", True), ("attr", "ParamAttr", "...", True)])

    def test_of_one_name_are_overloads(self):
        made = table("Variable F(const Variable& x);\nVariable F(const std::vector<Variable>& xs);")
        self.assertEqual(emit_stub(made, "layers", ["Variable"]).splitlines()[2:],
                         ["from ._skiff import Variable", "", "@overload", "def f(x: Variable) -> Variable: ...",
                          "@overload", "def f(xs: Sequence[Variable]) -> Variable: ..."])

    def test_of_results_are_named_tuples(self):
        made = table("struct Best {\n  Variable values;\n  Variable places;\n};\nBest F(const Variable& x);")
        self.assertIn("class Best(NamedTuple):\n    values: Variable\n    places: Variable\n",
                      emit_stub(made, "layers", []))

    def test_without_a_python_form_are_errors(self):
        for body, message in (
                ("Variable F(const Widget& w);", "a.h:6: Widget has no Python form"),
                ("Widget F(const Variable& x);", "a.h:6: F returns Widget, which has no Python form"),
                ("Variable F(int64_t x = kMost);", "a.h:6: the default kMost of type int64_t has no Python form"),
                ("struct O {\n  int64_t x = 0;\n};\nVariable F(int64_t x, const O& o);",
                 "a.h:9: F: two parameters are called x"),
                ("struct O {\n  explicit O(int64_t x);\n};\nVariable F(const O& o);",
                 "a.h:6: O has members that are no fields: a.h:7: explicit O(int64_t x);")):
            with self.subTest(body):
                with self.assertRaises(DeclarationError) as raised:
                    table(body)
                self.assertEqual(str(raised.exception), message)
        with self.assertRaisesRegex(DeclarationError, "a.h:6: skiff::other has no Python module"):
            table("Variable F(const Variable& x);", "skiff::other")


if __name__ == "__main__":
    unittest.main()
