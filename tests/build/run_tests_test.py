"""tools/run_tests.py counts what Bazel's events and test.xml files say."""
import os
import unittest

from tools.run_tests import Outcome, cases

MIXED = """<testsuites><testsuite>
  <testcase name="passes" status="run" result="completed"/>
  <testcase name="fails" status="run"><failure message="no"/></testcase>
  <testcase name="skips" status="run" result="skipped"><skipped message="no GPU"/></testcase>
  <testcase name="disabled" status="notrun" result="suppressed"/>
</testsuite></testsuites>"""


def write(name, text):
    path = os.path.join(os.environ["TEST_TMPDIR"], name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def summary(label, status):
    return {"id": {"testSummary": {"label": label}}, "testSummary": {"overallStatus": status}}


def result(label, path, attempt=1):
    return {"id": {"testResult": {"label": label, "run": 1, "shard": 1, "attempt": attempt}},
            "testResult": {"testActionOutput": [{"name": "test.xml", "uri": "file://" + path}]}}


class RunTests(unittest.TestCase):
    def test_counts_cases(self):
        self.assertEqual(cases(write("mixed.xml", MIXED)), (1, 1, 2))
        self.assertIsNone(cases(write("broken.xml", "<testsuites>")))
        self.assertIsNone(cases("absent.xml"))

    def test_a_crash_counts_as_one_failure(self):
        only_passed = write("crash.xml", "<testsuite><testcase name='a'/></testsuite>")
        outcome = Outcome([result("//a", only_passed), summary("//a", "FAILED")])
        self.assertEqual(outcome.count("//a"), (1, 1, 0))

    def test_a_target_without_xml_counts_as_one(self):
        outcome = Outcome([summary("//a", "PASSED"), summary("//b", "TIMEOUT")])
        self.assertEqual(outcome.count("//a"), (1, 0, 0))
        self.assertEqual(outcome.count("//b"), (0, 1, 0))

    def test_the_last_attempt_counts(self):
        failed = write("first.xml", "<testsuite><testcase name='a'><failure/></testcase></testsuite>")
        passed = write("second.xml", "<testsuite><testcase name='a'/></testsuite>")
        outcome = Outcome([result("//a", failed, 1), result("//a", passed, 2), summary("//a", "FLAKY")])
        self.assertEqual(outcome.count("//a"), (1, 0, 0))

    def test_what_does_not_build_is_told_from_what_does_not_apply(self):
        outcome = Outcome([
            {"id": {"targetCompleted": {"label": "//broken"}}, "completed": {}},
            {"id": {"targetCompleted": {"label": "//unanalysed"}}, "aborted": {"reason": "ANALYSIS_FAILURE"}},
            {"id": {"targetCompleted": {"label": "//cuda"}}, "aborted": {"reason": "SKIPPED"}},
            {"id": {"targetCompleted": {"label": "//fine"}}, "completed": {"success": True}},
        ])
        self.assertEqual(outcome.not_built, {"//broken", "//unanalysed"})
