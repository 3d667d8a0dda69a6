"""Tests that `cuda_test.sh run` counts the results of the packed tests, and counts nothing untested as passed."""
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import unittest

PASSED = "[ RUN      ] cuda_relu.a\n[       OK ] cuda_relu.a (1 ms)\n"
FAILED = "[ RUN      ] cuda_relu.b\n[  FAILED  ] cuda_relu.b (2 ms)\n"
SKIPPED = "[ RUN      ] cuda_relu.c\n[  SKIPPED ] cuda_relu.c (0 ms)\n"
SUMMARY = "[  FAILED  ] 1 test, listed below:\n[  FAILED  ] cuda_relu.b\n[  SKIPPED ] cuda_relu.c\n"


class Run(unittest.TestCase):
    def packed(self, folder, tests, alone=None, **programs):
        """Fills a folder like cuda_test.sh pack. Returns the environment of the script.

        tests: {name: (what it prints, its exit status)}, where PART in what it prints is the number of its
        process, ALL that of all. alone: tests that share the GPU with no other. programs: the texts of programs
        that are on PATH, with _ for - in their names.
        """
        shutil.copy("tools/cuda_test.sh", folder)
        os.mkdir(os.path.join(folder, "tests"))
        os.mkdir(os.path.join(folder, "tests_alone"))
        texts = {name.replace("_", "-"): text for name, text in programs.items()}
        for place, those in (("tests", tests), ("tests_alone", alone or {})):
            for name, (text, status) in those.items():
                text = text.replace("PART", "${GTEST_SHARD_INDEX}").replace("ALL", "${GTEST_TOTAL_SHARDS}")
                texts[os.path.join(place, name)] = f"cat <<END\n{text}END\nexit {status}\n"
        for path, text in texts.items():
            path = os.path.join(folder, path)
            with open(path, "w", encoding="utf-8") as stream:
                stream.write("#!/bin/bash\n" + text)
            os.chmod(path, stat.S_IRWXU)
        return {"PATH": folder + ":/usr/bin:/bin"}

    def run_packed(self, tests, *arguments, alone=None, **programs):
        """(exit status, last line) of cuda_test.sh run; the arguments are those of packed."""
        with tempfile.TemporaryDirectory() as folder:
            environment = self.packed(folder, tests, alone, **programs)
            done = subprocess.run([os.path.join(folder, "cuda_test.sh"), "run", *arguments], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False, env=environment)
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
        tool = '[[ "$1 $2 $3 $4" == "--tool racecheck --error-exitcode 1" ]] || exit 2\n"${@: -1}"\nexit '
        for status, expected in ((0, (0, "1 passed, 0 failed, 0 skipped")), (1, (1, "1 passed, 1 failed, 0 skipped"))):
            self.assertEqual(self.run_packed({"a": (PASSED, 0)}, "--sanitizer=racecheck",
                                             compute_sanitizer=f"{tool}{status}\n"), expected)

    def test_says_what_the_sanitizer_needs(self):
        status, line = self.run_packed({"a": (PASSED, 0)}, "--sanitizer=memcheck")
        self.assertEqual(status, 1)
        self.assertIn("compute-sanitizer is not on PATH", line)
        self.assertEqual(self.run_packed({"a": (PASSED, 0)}, "--sanitizer=racecheque")[0], 2)

    def test_a_program_without_tests_is_a_failure(self):
        self.assertEqual(self.run_packed({"a": ("", 0)}), (1, "0 passed, 1 failed, 0 skipped"))

    def test_processes_share_the_tests_and_the_gpu(self):
        # The service is there while they run, and then no more.
        service = ('if [[ "$1" == -d ]]; then touch "$CUDA_MPS_PIPE_DIRECTORY/service"; '
                   'elif [[ "$(cat)" == quit ]]; then rm "$CUDA_MPS_PIPE_DIRECTORY/service"; fi\n')
        shared = ("[       OK ] a.PART_of_ALL$(ls $CUDA_MPS_PIPE_DIRECTORY/service | sed 's/.*service/ shared/') "
                  "(1 ms)\n", 0)
        alone = ("[ RUN      ] c\n[       OK ] c PART_of_ALL ${CUDA_MPS_PIPE_DIRECTORY:-alone} (1 ms)\n", 0)
        with tempfile.TemporaryDirectory() as logs:
            self.assertEqual(self.run_packed({"a": shared, "b": shared}, "--jobs=3", "--logs=" + logs,
                                             alone={"c": alone}, nvidia_cuda_mps_control=service),
                             (0, "7 passed, 0 failed, 0 skipped"))
            self.assertEqual(sorted(os.listdir(logs)), ["a.0", "a.1", "a.2", "b.0", "b.1", "b.2", "c.0"])
            for name in os.listdir(logs):
                with open(os.path.join(logs, name), encoding="utf-8") as stream:
                    self.assertIn("c 0_of_1 alone" if name == "c.0" else f"a.{name[-1]}_of_3 shared", stream.read())

    def test_one_process_needs_no_service(self):
        self.assertEqual(self.run_packed({"a": (PASSED, 0)}, alone={"b": (PASSED, 0)}),
                         (0, "2 passed, 0 failed, 0 skipped"))

    def test_says_what_processes_need(self):
        status, line = self.run_packed({"a": (PASSED, 0)}, "--jobs=2")
        self.assertEqual(status, 1)
        self.assertIn("nvidia-cuda-mps-control is not on PATH", line)
        status, line = self.run_packed({"a": (PASSED, 0)}, "--jobs=2", nvidia_cuda_mps_control="exit 1\n")
        self.assertEqual((status, line), (1, "error: --jobs=2: nvidia-cuda-mps-control failed to start the "
                                             "multi-process service"))

    def test_what_it_started_ends_with_the_script(self):
        def exists(group):
            try:
                os.killpg(group, 0)
                return True
            except ProcessLookupError:
                return False

        with tempfile.TemporaryDirectory() as folder:
            served = os.path.join(folder, "served")
            service = f'if [[ "$1" == -d ]]; then touch {served}; elif [[ "$(cat)" == quit ]]; then rm {served}; fi\n'
            # A part is a process group of its own.
            test = (f"END\nps -o pgid= -p $$ >{folder}/group.PART\nmv {folder}/group.PART {folder}/part.PART\n"
                    "exec sleep 600\n", 0)
            environment = self.packed(folder, {"a": test}, nvidia_cuda_mps_control=service)
            parts = [os.path.join(folder, "part.0"), os.path.join(folder, "part.1")]
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                with subprocess.Popen([os.path.join(folder, "cuda_test.sh"), "run", "--jobs=2"], env=environment,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as script:
                    while not all(map(os.path.exists, parts)):
                        self.assertIsNone(script.poll())
                        time.sleep(0.01)
                    script.send_signal(number)
                    self.assertNotEqual(script.wait(), 0)
                self.assertFalse(os.path.exists(served), number)
                for part in parts:
                    with open(part, encoding="utf-8") as stream:
                        group = int(stream.read())
                    os.remove(part)
                    for _ in range(1000):  # until it has died of the signal
                        if not exists(group):
                            break
                        time.sleep(0.01)
                    else:
                        os.killpg(group, signal.SIGKILL)
                        self.fail(f"{os.path.basename(part)} goes on after signal {number}")

    def test_a_number_of_processes_runs_at_a_time(self):
        with tempfile.TemporaryDirectory() as folder:
            # Each waits until a second one runs, too, and counts them.
            test = (f"END\nmkdir -p {folder}/running {folder}/met\ntouch {folder}/running/$$\n"
                    f"for ((i = 0; i < 1000 && $(ls {folder}/met | wc -l) < 2; ++i)); do\n"
                    f"  [[ $(ls {folder}/running | wc -l) -lt 2 ]] || touch {folder}/met/$$\n  sleep 0.01\ndone\n"
                    f"n=$(ls {folder}/running | wc -l)\nrm {folder}/running/$$\n"
                    f"[[ $n -le 2 && $(ls {folder}/met | wc -l) -ge 2 ]] || exit 1\ncat <<END\n" + PASSED, 0)
            self.assertEqual(self.run_packed({"a": test, "b": test, "c": test}, "--jobs=2",
                                             nvidia_cuda_mps_control=":"), (0, "6 passed, 0 failed, 0 skipped"))

    def test_processes_run_under_the_sanitizer(self):
        tool = '[[ "$*" == "--tool memcheck --error-exitcode 1 --require-cuda-init no "* ]] || exit 2\n"${@: -1}"\n'
        test = ("END\n[[ $OMP_NUM_THREADS == 1 && -n $CUDA_MPS_PIPE_DIRECTORY ]] || exit 1\ncat <<END\n" + PASSED, 0)
        self.assertEqual(self.run_packed({"a": test}, "--jobs=2", "--sanitizer=memcheck", compute_sanitizer=tool,
                                         nvidia_cuda_mps_control=":"), (0, "2 passed, 0 failed, 0 skipped"))

    def test_a_part_that_was_killed_is_a_failure(self):
        killed = ('END\n[[ $GTEST_SHARD_INDEX != 1 ]] || { kill -9 "$PPID"; exec sleep 0; }\ncat <<END\n' + PASSED, 0)
        self.assertEqual(self.run_packed({"a": killed, "b": (PASSED, 0)}, "--jobs=2", nvidia_cuda_mps_control=":"),
                         (1, "3 passed, 1 failed, 0 skipped"))

    def test_logs_are_those_of_the_run(self):
        with tempfile.TemporaryDirectory() as logs:
            for name in ("a.7", "mine.status"):
                with open(os.path.join(logs, name), "w", encoding="utf-8") as stream:
                    stream.write(FAILED)
            self.assertEqual(self.run_packed({"a": (PASSED, 0)}, "--logs=" + logs),
                             (0, "1 passed, 0 failed, 0 skipped"))
            self.assertEqual(sorted(os.listdir(logs)), ["a.0", "mine.status"])

    def test_a_failure_of_one_process_is_a_failure(self):
        crash = "END\n[[ $GTEST_SHARD_INDEX != 1 ]] || exit 139\ncat <<END\n" + PASSED
        self.assertEqual(self.run_packed({"a": (crash, 0)}, "--jobs=3", nvidia_cuda_mps_control="cat >/dev/null"),
                         (1, "2 passed, 1 failed, 0 skipped"))
        self.assertEqual(self.run_packed({"a": (PASSED + FAILED, 1)}, "--jobs=2", nvidia_cuda_mps_control=":"),
                         (1, "2 passed, 2 failed, 0 skipped"))

    def test_a_number_of_processes_is_positive(self):
        for flag in ("--jobs=0", "--jobs=-1", "--jobs=", "--jobs=many"):
            self.assertEqual(self.run_packed({"a": (PASSED, 0)}, flag)[0], 2)


if __name__ == "__main__":
    unittest.main()
