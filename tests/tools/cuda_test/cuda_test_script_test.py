"""Tests that `cuda_test.sh run` counts the results of the packed tests, and counts nothing untested as passed."""
import os
import shutil
import stat
import subprocess
import tempfile
import unittest

PASSED = "[ RUN      ] cuda_relu.a\n[       OK ] cuda_relu.a (1 ms)\n"
FAILED = "[ RUN      ] cuda_relu.b\n[  FAILED  ] cuda_relu.b (2 ms)\n"
SKIPPED = "[ RUN      ] cuda_relu.c\n[  SKIPPED ] cuda_relu.c (0 ms)\n"
SUMMARY = "[  FAILED  ] 1 test, listed below:\n[  FAILED  ] cuda_relu.b\n[  SKIPPED ] cuda_relu.c\n"


class Run(unittest.TestCase):
    def run_packed(self, tests, *arguments, sanitizer=None):
        """(exit status, last line) for {name: (what it prints, its exit status)}.

        PART in what it prints is the number of its process, ALL that of all. sanitizer: the text of a
        compute-sanitizer that is on PATH.
        """
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy("tools/cuda_test.sh", folder)
            os.mkdir(os.path.join(folder, "tests"))
            for name, (text, status) in tests.items():
                path = os.path.join(folder, "tests", name)
                with open(path, "w", encoding="utf-8") as stream:
                    text = text.replace("PART", "${GTEST_SHARD_INDEX}").replace("ALL", "${GTEST_TOTAL_SHARDS}")
                    stream.write(f"#!/bin/bash\ncat <<END\n{text}END\nexit {status}\n")
                os.chmod(path, stat.S_IRWXU)
            if sanitizer is not None:
                path = os.path.join(folder, "compute-sanitizer")
                with open(path, "w", encoding="utf-8") as stream:
                    stream.write(sanitizer)
                os.chmod(path, stat.S_IRWXU)
            done = subprocess.run([os.path.join(folder, "cuda_test.sh"), "run", *arguments], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False,
                                  env={"PATH": folder + ":/usr/bin:/bin"})
            return done.returncode, done.stdout.splitlines()[-1]

    def test_passes_if_all_have_passed(self):
        self.assertEqual(self.run_packed({"a": (PASSED, 0), "b": (PASSED + PASSED, 0)}),
                         (0, "3 passed, 0 failed, 0 skipped"))

    def test_fails_with_a_test(self):
        self.assertEqual(self.run_packed({"a": (PASSED, 0), "b": (PASSED + FAILED + SUMMARY, 1)}),
                         (1, "2 passed, 1 failed, 0 skipped"))

    def test_a_skipped_test_is_not_tested(self):
        self.assertEqual(self.run_packed({"a": (PASSED + SKIPPED + SUMMARY, 0)}), (1, "1 passed, 0 failed, 1 skipped"))

    def test_a_crash_is_a_failure(self):
        self.assertEqual(self.run_packed({"a": (PASSED, 139)}), (1, "1 passed, 1 failed, 0 skipped"))

    def test_what_the_sanitizer_finds_is_a_failure(self):
        tool = '#!/bin/bash\n[[ "$1 $2 $3 $4" == "--tool racecheck --error-exitcode 1" ]] || exit 2\n"${@: -1}"\nexit '
        for status, expected in ((0, (0, "1 passed, 0 failed, 0 skipped")), (1, (1, "1 passed, 1 failed, 0 skipped"))):
            self.assertEqual(self.run_packed({"a": (PASSED, 0)}, "--sanitizer=racecheck", sanitizer=f"{tool}{status}\n"),
                             expected)

    def test_says_what_the_sanitizer_needs(self):
        status, line = self.run_packed({"a": (PASSED, 0)}, "--sanitizer=memcheck")
        self.assertEqual(status, 1)
        self.assertIn("compute-sanitizer is not on PATH", line)
        self.assertEqual(self.run_packed({"a": (PASSED, 0)}, "--sanitizer=racecheque")[0], 2)

    def test_a_program_without_tests_is_a_failure(self):
        self.assertEqual(self.run_packed({"a": ("", 0)}), (1, "0 passed, 1 failed, 0 skipped"))

    def test_processes_share_the_tests(self):
        one = "[ RUN      ] a.PART_of_ALL\n[       OK ] a.PART_of_ALL (1 ms)\n"
        with tempfile.TemporaryDirectory() as logs:
            self.assertEqual(self.run_packed({"a": (one, 0), "b": (one, 0)}, "--jobs=3", "--logs=" + logs),
                             (0, "6 passed, 0 failed, 0 skipped"))
            self.assertEqual(sorted(os.listdir(logs)), ["a.0", "a.1", "a.2", "b.0", "b.1", "b.2"])
            for name in os.listdir(logs):
                with open(os.path.join(logs, name), encoding="utf-8") as stream:
                    self.assertIn(f"OK ] a.{name[-1]}_of_3 ", stream.read())
        self.assertEqual(self.run_packed({"a": (one + FAILED, 1)}, "--jobs=2"), (1, "2 passed, 2 failed, 0 skipped"))

    def test_a_crash_of_one_process_is_a_failure(self):
        crash = "END\n[[ $GTEST_SHARD_INDEX != 1 ]] || exit 139\ncat <<END\n" + PASSED
        self.assertEqual(self.run_packed({"a": (crash, 0)}, "--jobs=3"), (1, "2 passed, 1 failed, 0 skipped"))

    def test_a_number_of_processes_is_positive(self):
        for flag in ("--jobs=0", "--jobs=-1", "--jobs=", "--jobs=many"):
            self.assertEqual(self.run_packed({"a": (PASSED, 0)}, flag)[0], 2)


if __name__ == "__main__":
    unittest.main()
