#!/usr/bin/env python3
"""Runs `bazel test` and ends with one line: N passed, N failed, N skipped.

usage: run_tests.py [bazel test flags] [targets] [--then [flags] [targets]]...
Default target: //... Each --then starts another `bazel test`; the last line
counts them all. BAZEL: the bazel to call.

Counts the test cases in a target's test.xml, which GoogleTest and py_test_main
write; a target without a test.xml counts as one case. A target that failed
without a failing case (crash, timeout, does not build) counts as one failure.
So does a target whose test.xml has no case (unless --test_filter or --test_arg
may have left none), and a run without any case: a test that tested nothing has
not passed. Exit status: bazel's, or 1 if anything failed.
"""
import json
import os
import subprocess
import sys
import tempfile
import urllib.parse
import xml.etree.ElementTree as ET


def cases(path):
    """(passed, failed, skipped) of a test.xml; None if it is missing or broken."""
    try:
        root = ET.parse(path).getroot()
    except (OSError, ET.ParseError):
        return None
    passed = failed = skipped = 0
    for case in root.iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif (case.find("skipped") is not None or case.get("result") in ("skipped", "suppressed")
              or case.get("status") == "notrun"):
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def run_bazel(args):
    """(exit status, build events) of one `bazel test`."""
    fd, path = tempfile.mkstemp(suffix=".json")
    os.close(fd)
    command = [os.environ.get("BAZEL", "bazel"), "test", "--build_event_json_file=" + path, "--keep_going", *args]
    try:
        status = subprocess.call(command)
        with open(path) as f:
            return status, [json.loads(line) for line in f if line.strip()]
    except OSError as error:
        print("cannot run %s: %s" % (command[0], error))
        return 127, []
    finally:
        os.unlink(path)


class Outcome:
    """The results of the test targets, from Bazel's build events."""

    def __init__(self, events):
        self.status = {}  # label -> PASSED, FAILED, ...
        self.xmls = {}  # (label, shard, run) -> test.xml; the last attempt wins
        self.not_built = set()
        for event in events:
            for kind, identity in event.get("id", {}).items():
                self._add(kind, identity, event)

    def _add(self, kind, identity, event):
        label = identity.get("label") if isinstance(identity, dict) else None
        if kind == "testSummary" and "testSummary" in event:
            self.status[label] = event["testSummary"].get("overallStatus", "NO_STATUS")
        elif kind == "testResult" and "testResult" in event:
            for out in event["testResult"].get("testActionOutput", []):
                if out.get("name") == "test.xml":
                    key = (label, identity.get("shard"), identity.get("run"))
                    self.xmls[key] = urllib.parse.unquote(urllib.parse.urlparse(out["uri"]).path)
        elif kind == "targetCompleted" and (event.get("aborted") or not event.get("completed", {}).get("success")):
            # SKIPPED: incompatible with this configuration, such as a CUDA target in a build without CUDA.
            if event.get("aborted", {}).get("reason") != "SKIPPED":
                self.not_built.add(label)

    def count(self, label):
        """(passed, failed, skipped) of a test target; all 0 if it passed and its test.xml has no case."""
        found = [cases(path) for key, path in self.xmls.items() if key[0] == label]
        found = [counts for counts in found if counts is not None]
        passed, failed, skipped = [sum(column) for column in zip(*found)] if found else (0, 0, 0)
        ok = self.status[label] in ("PASSED", "FLAKY")
        if not ok:
            return passed, max(failed, 1), skipped
        return (passed, failed, skipped) if found else (1, 0, 0)


def tally(outcome, is_filtered):
    """(passed, failed, skipped, what failed) of all targets."""
    passed, failed, skipped, bad = 0, 0, 0, []
    for label in sorted(outcome.status):
        p, f, s = outcome.count(label)
        passed, failed, skipped = passed + p, failed + f, skipped + s
        if f:
            bad.append("%s (%s)" % (label, outcome.status[label]))
        elif p + s == 0 and not is_filtered:
            failed += 1
            bad.append("%s (has no test case)" % label)
    for label in sorted(outcome.not_built - set(outcome.status)):
        failed += 1
        bad.append("%s (does not build)" % label)
    return passed, failed, skipped, bad


def is_filtered(args):
    """Whether the flags may leave targets without a case."""
    return any(a.startswith(("--test_filter", "--test_arg")) for a in args)


def run_suite(args):
    """(passed, failed, skipped, what failed, exit status) of one `bazel test`."""
    if not any(a.startswith(("//", ":", "@")) for a in args):
        args = args + ["//..."]
    status, events = run_bazel(args)
    passed, failed, skipped, bad = tally(Outcome(events), is_filtered(args))
    if status not in (0, 3, 4) and failed == 0:  # 3: tests failed, 4: no tests
        failed = 1
        bad.append("bazel exit status %d" % status)
    if passed + failed + skipped == 0:
        failed = 1
        bad.append("no test ran")
    return passed, failed, skipped, bad, status


def suites_of(args):
    """The arguments between one --then and the next."""
    suites = [[]]
    for arg in args:
        if arg == "--then":
            suites.append([])
        else:
            suites[-1].append(arg)
    return suites


def main():
    passed, failed, skipped, bad, status = 0, 0, 0, [], 0
    for args in suites_of(sys.argv[1:]):
        p, f, s, suite_bad, suite_status = run_suite(args)
        passed, failed, skipped = passed + p, failed + f, skipped + s
        bad += suite_bad
        status = status or suite_status
    for line in bad:
        print("FAILED: " + line)
    print("%d passed, %d failed, %d skipped" % (passed, failed, skipped), flush=True)
    sys.exit(status if status else (1 if failed else 0))


if __name__ == "__main__":
    main()
