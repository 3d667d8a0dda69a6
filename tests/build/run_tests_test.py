"""Tests that tools/run_tests.py counts the results in Bazel's events and test.xml files."""
import json
import os
import stat
import subprocess
import sys
import unittest

from tools import run_tests
from tools.run_tests import Outcome, cases, is_filtered, suites_of, tally

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


def run(events, *args):
    """Returns (exit status, last line) of run_tests.py, run with a fake bazel that succeeds and writes `events`."""
    bazel = write("bazel", "#!/bin/bash\nfor arg; do case $arg in --build_event_json_file=*) cat > \"${arg#*=}\" <<'END'\n"
                  + "".join(json.dumps(event) + "\n" for event in events) + "END\n;; esac; done\n")
    os.chmod(bazel, stat.S_IRWXU)
    done = subprocess.run([sys.executable, run_tests.__file__, *args], stdout=subprocess.PIPE, text=True, check=False,
                          env={**os.environ, "BAZEL": bazel})
    return done.returncode, done.stdout.splitlines()[-1]


def result(label, path, attempt=1):
    return {"id": {"testResult": {"label": label, "run": 1, "shard": 1, "attempt": attempt}},
            "testResult": {"testActionOutput": [{"name": "test.xml", "uri": "file://" + path}]}}


class RunTests(unittest.TestCase):
    def test_counts_cases(self):
        self.assertEqual(cases(write("mixed.xml", MIXED)), (1, 1, 2))
        self.assertEqual(cases(write("empty.xml", "<testsuites tests='0'/>")), (0, 0, 0))
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

    def test_a_target_without_a_case_has_not_passed(self):
        empty = write("no_cases.xml", "<testsuites tests='0'/>")
        outcome = Outcome([result("//a", empty), summary("//a", "PASSED"), summary("//b", "PASSED")])
        self.assertEqual(tally(outcome, is_filtered([])), (1, 1, 0, ["//a (has no test case)"]))
        # The filter excludes all of its cases.
        self.assertEqual(tally(outcome, is_filtered(["--test_filter=X.*"])), (1, 0, 0, []))

    def test_a_shard_may_be_left_without_a_case(self):
        empty = result("//a", write("shard_1.xml", "<testsuites tests='0'/>"))
        full = result("//a", write("shard_2.xml", "<testsuite><testcase name='a'/></testsuite>"))
        full["id"]["testResult"]["shard"] = 2
        outcome = Outcome([empty, full, summary("//a", "PASSED")])
        self.assertEqual(tally(outcome, is_filtered([])), (1, 0, 0, []))

    def test_passes_if_something_has_passed(self):
        self.assertEqual(run([summary("//a", "PASSED")], "//a"), (0, "1 passed, 0 failed, 0 skipped"))

    def test_counts_all_suites(self):
        self.assertEqual(suites_of(["-a", "--then", "-b", "//c"]), [["-a"], ["-b", "//c"]])
        self.assertEqual(run([summary("//a", "PASSED")], "//a", "--then", "//a"), (0, "2 passed, 0 failed, 0 skipped"))
        self.assertEqual(run([], "//a", "--then", "//a")[1], "0 passed, 2 failed, 0 skipped")

    def test_fails_if_bazel_ran_nothing(self):
        self.assertEqual(run([], "//a"), (1, "0 passed, 1 failed, 0 skipped"))
        only_cuda = [{"id": {"targetCompleted": {"label": "//cuda"}}, "aborted": {"reason": "SKIPPED"}}]
        self.assertEqual(run(only_cuda, "//cuda"), (1, "0 passed, 1 failed, 0 skipped"))

    def test_fails_if_a_target_has_no_case(self):
        empty = write("main_without_tests.xml", "<testsuites tests='0'/>")
        events = [summary("//a", "PASSED"), result("//b", empty), summary("//b", "PASSED")]
        self.assertEqual(run(events, "//..."), (1, "1 passed, 1 failed, 0 skipped"))

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
