"""Ranks that mpirun starts, each with a Python of its own: what skiff.distributed says, trainings, failures."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from tests.harness.mpirun import mpirun

PACKAGE = os.path.abspath("python_stub")
PROGRAM = os.path.abspath("tests/python_stub/ranks.py")
SCRIPT = os.path.abspath("tests/python_stub/train_on_ranks.py")


def run(*cases, ranks=2, program=PROGRAM, package=PACKAGE, **environment):
    """The exit status and the output of a program on several ranks."""
    return mpirun(ranks, [sys.executable, program, *cases], {"PYTHONPATH": package, **environment})


def run_alone(*cases, program=PROGRAM):
    """The output of the same program without a launcher."""
    done = subprocess.run([sys.executable, program, *cases], stdout=subprocess.PIPE, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": PACKAGE, "OMP_NUM_THREADS": "1"})
    return done.stdout


class InAFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name


class Works(InAFolder):
    def output(self, *cases, **options):
        status, output = run(*cases, **options)
        self.assertEqual(status, 0, output)
        return output

    def test_ranks_know_their_place(self):
        output = self.output("place", "gather", "devices", ranks=3)
        self.assertEqual(sorted(re.findall(r"rank \d of \d", output)), [f"rank {i} of 3" for i in range(3)])

    def test_ranks_share_batches(self):
        self.output("batches")

    def test_threads_take_turns(self):
        self.output("threads=" + self.folder + "/refused")

    def test_loop_has_the_bits_of_merged_gradients(self):
        merged, other = run_alone("loop=2", "loop=1").splitlines()
        self.assertRegex(merged, r"^18 losses, weights \w{16}$")
        self.assertNotEqual(merged, other)
        output = self.output("loop", "loop_of_small_buckets", "loop_of_shards", "fast_sums", "evaluation_of_one_rank")
        self.assertEqual(output.splitlines(), [merged] * 3)

    def test_trainer_has_the_bits_of_merged_gradients(self):
        alone = run_alone("train=" + self.folder + "/alone").splitlines()
        output = self.output("train=" + self.folder + "/ranks").splitlines()
        self.assertEqual(output[-1], alone[-1])
        # Rank 0 alone writes messages.
        self.assertEqual(len([line for line in output if line.startswith("resumed from")]), 1)

    def test_forked_children_end_alone(self):
        self.assertIn("ZeroDivisionError: in the child", self.output("fork_children"))

    def test_package_has_the_plugin(self):
        shutil.copytree(PACKAGE + "/skiff", self.folder + "/skiff")
        self.output("gather", package=self.folder, RUNFILES_DIR="")

    def test_script_of_the_docs(self):
        alone = run_alone(program=SCRIPT).splitlines()
        output = self.output(program=SCRIPT).splitlines()
        self.assertEqual([line.split(":")[0] for line in output], ["epoch 1", "epoch 2", "epoch 3"])
        self.assertEqual(len(alone), len(output))
        self.assertLess(float(output[-1].split()[-1]), 0.01)


class Fails(InAFolder):
    def assert_fails(self, case, messages):
        """All ranks end, with a status other than 0, and the output has the messages."""
        status, output = run(case)
        self.assertNotEqual(status, 0, output)
        for message in messages:
            # Anywhere: mpirun mixes the lines of several streams.
            self.assertRegex(output, message)

    def test_exception(self):
        self.assert_fails("raise_in_a_loop", messages=[
            "three steps", "Traceback ", r"rank 1 \(host .+\): ZeroDivisionError: after three steps"])

    def test_exception_in_a_reader(self):
        self.assert_fails("raise_in_a_reader=" + self.folder, messages=[
            r"rank 1 \(host .+\): after step 4: ZeroDivisionError: in batch 5"])

    def test_exit(self):
        self.assert_fails("exit_with_status=3", messages=[
            r"rank 1 \(host .+\): exits before all ranks have ended"])

    def test_thread_that_others_wait_for(self):
        self.assert_fails("leave_a_thread", messages=[r"rank 1 \(host .+\): exits before all ranks have ended"])

    def test_rank_that_hangs(self):
        self.assert_fails("hang", messages=[
            r"rank 0 \(host .+\): skiff.errors.IoError: rank 0 \(host .+\) has waited 1 s for rank 1"])

    def test_abort(self):
        self.assert_fails("abort", messages=["some words", r"rank 1 \(host .+\): the disk is full"])

    def test_other_weights(self):
        self.assert_fails("begin_with_other_weights", messages=[
            r"FailedPreconditionError: rank 1 \(host .+\): the hash of fc_1.b_0 is \w{16}, rank 0: \w{16}"])

    def test_step_after_an_error(self):
        self.assert_fails("go_on_after_an_error", messages=[
            r"rank 1 .*FailedPreconditionError: earlier work with the other ranks has failed"])


if __name__ == "__main__":
    unittest.main()
