"""Tests that tools/pass_list.py reports where list and headers disagree."""
import unittest

from tools.pass_list import check, registry

LIST = "pipelines.txt"
PROGRAM = 'class EarlyUpdatePass final : public ProgramPass { return "early_update"; }'
PLAN = 'class DeadCodePass final : public PlanPass { return "dead_code"; }'
HEADERS = {"a/early_update_pass.h": PROGRAM, "a/dead_code_pass.h": PLAN}
TEXT = "# a comment\nprogram early_update\nplan -dead_code  # only when asked for\n"


class PassList(unittest.TestCase):
    def mistake(self, text, headers=None):
        mistakes = check(LIST, text, HEADERS if headers is None else headers)[1]
        self.assertEqual(len(mistakes), 1, mistakes)
        return mistakes[0]

    def test_reads_kinds_names_and_defaults(self):
        listed, mistakes = check(LIST, TEXT, HEADERS)
        self.assertEqual(mistakes, [])
        self.assertEqual(listed, [("program", "early_update", ""), ("plan", "dead_code", "-")])

    def test_reads_defaults_of_a_device(self):
        listed, mistakes = check(LIST, TEXT.replace("program ", "program device:"), HEADERS)
        self.assertEqual(mistakes, [])
        self.assertEqual(listed[0], ("program", "early_update", "device:"))
        source = registry(listed)
        self.assertIn("on_cpu{};", source)
        self.assertIn('on_device{"early_update"};', source)
        self.assertIn("a plan pass asks the plan for its place", self.mistake(TEXT.replace("-dead", "device:dead")))

    def test_writes_the_default_passes_and_all_passes(self):
        source = registry([("plan", "dead_code", "-"), ("plan", "layout", "")])
        self.assertIn('names{"layout"};', source)
        self.assertIn('PlanPassNames() { return {"dead_code", "layout"}; }', source)
        self.assertIn('if (name == "dead_code") return std::make_unique<DeadCodePass>();', source)

    def test_wants_a_line_for_each_header(self):
        message = self.mistake("plan dead_code\n")
        self.assertIn("a/early_update_pass.h is not listed", message)
        self.assertIn("`plan early_update`", message)

    def test_wants_a_header_for_each_line(self):
        self.assertEqual(self.mistake(TEXT + "plan layout\n"),
                         "pipelines.txt: `plan layout`: there is no header layout_pass.h")

    def test_wants_lines_of_two_words_and_no_name_twice(self):
        self.assertIn("pipelines.txt:4: expected `program NAME`", self.mistake(TEXT + "layout\n"))
        self.assertIn("pipelines.txt:4: dead_code is listed twice", self.mistake(TEXT + "plan dead_code\n"))

    def test_wants_the_kind_that_the_class_has(self):
        self.assertEqual(self.mistake("program early_update\nprogram dead_code\n"),
                         "pipelines.txt: `program dead_code`, but a/dead_code_pass.h has a PlanPass")

    def test_wants_class_and_name_after_the_file(self):
        headers = dict(HEADERS)
        headers["a/dead_code_pass.h"] = PLAN.replace("DeadCodePass", "DeadcodePass")
        self.assertIn("expected `class DeadCodePass final : public PlanPass`", self.mistake(TEXT, headers))
        headers["a/dead_code_pass.h"] = PLAN.replace('"dead_code"', '"dead"')
        self.assertIn('expected name() to return "dead_code"', self.mistake(TEXT, headers))
