"""Runs the unittest cases of a file under Bazel, and writes Bazel's test.xml.

usage: py_test_main.py TEST.py, in the runfiles folder of the workspace
With the XML file each case counts on its own, skipped ones included.
"""
import os
import sys
import time
import unittest
import xml.etree.ElementTree as ET


class _Result(unittest.TextTestResult):
    """Collects (case, seconds, kind, message)."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.cases = []
        self._begin = 0.0

    def startTest(self, test):
        self._begin = time.monotonic()
        super().startTest(test)

    def _add(self, test, kind, message=""):
        self.cases.append((test, time.monotonic() - self._begin, kind, message))

    def addSuccess(self, test):
        super().addSuccess(test)
        self._add(test, None)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._add(test, "failure", str(err[1]))

    def addError(self, test, err):
        super().addError(test, err)
        self._add(test, "error", str(err[1]))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._add(test, "skipped", reason)

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self._add(test, None)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self._add(test, "failure", "succeeded, which was not expected")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._add(subtest, "failure", str(err[1]))


def _write_xml(path, name, cases):
    suite = ET.Element("testsuite", name=name, tests=str(len(cases)))
    for test, seconds, kind, message in cases:
        group, _, case = test.id().rpartition(".")
        node = ET.SubElement(suite, "testcase", classname=group, name=case, time="%.3f" % seconds)
        if kind:
            ET.SubElement(node, kind, message=message[:2000])
    ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def _load(module):
    """Returns the cases of a module, or one skipped case if importing the module raises SkipTest."""
    try:
        return unittest.defaultTestLoader.loadTestsFromName(module)
    except unittest.SkipTest as skip:
        skipped = type("Module", (unittest.TestCase,), {"test_all": unittest.skip(str(skip))(lambda self: None)})
        return unittest.TestSuite([skipped("test_all")])


def main():
    module = sys.argv[1][:-len(".py")].replace("/", ".")
    suite = _load(module)
    result = unittest.TextTestRunner(resultclass=_Result, verbosity=2, stream=sys.stdout).run(suite)
    if os.environ.get("XML_OUTPUT_FILE"):
        _write_xml(os.environ["XML_OUTPUT_FILE"], module, result.cases)
    if not result.cases:
        print("no test cases in " + sys.argv[1])
    sys.exit(0 if result.wasSuccessful() and result.cases else 1)


if __name__ == "__main__":
    main()
