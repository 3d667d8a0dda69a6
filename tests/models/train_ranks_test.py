"""Train programs as ranks that mpirun starts: they end like one process, resume, and name what is wrong."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))

import kill_and_resume as script  # noqa: E402
from mpirun import launcher, mpirun, variables  # noqa: E402

PROGRAM = "models/mlp/train"
# 15 batches an epoch, 30 in all: whole runs of 2, 3 and 5 ranks.
FLAGS = [PROGRAM, "--epochs=2", "--limit_samples=480", "--validation_samples=50", "--batch_size=32",
         "--hidden_units=16", "--dropout=0.2", "--threads=1"]


def alone(flags):
    done = subprocess.run(flags, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


class TrainRanks(unittest.TestCase):
    def setUp(self):
        # pylint: disable-next=consider-using-with
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def directory(self, name):
        return os.path.join(self.folder.name, name)

    def run_ranks(self, ranks, flags, name, status=0):
        found, output = mpirun(ranks, [*FLAGS, *flags, "--output_dir=" + self.directory(name)])
        self.assertEqual(found, status, output)
        return output

    def outcome(self, name, output):
        return script.outcome(self.directory(name), output)

    def test_ranks_end_like_one_process_that_merges_gradients(self):
        status, output = alone([*FLAGS, "--global_batch=96", "--output_dir=" + self.directory("alone")])
        self.assertEqual(status, 0, output)
        output_of_ranks = self.run_ranks(3, ["--global_batch=96"], "ranks")
        self.assertIn(" steps, 3 ranks on 1 host, batches of 96 = 3 x 32, 1 threads, output in ", output_of_ranks)
        expected, found = self.outcome("alone", output), self.outcome("ranks", output_of_ranks)
        # Only the one process has sums of gradients.
        self.assertNotEqual(found.pop("checkpoint"), expected.pop("checkpoint"))
        self.assertEqual(found, expected)
        # Each message once.
        self.assertEqual(output_of_ranks.count("epoch 2/2  loss"), 1)
        self.assertEqual(output_of_ranks.count("best validation accuracy"), 1)

    def test_stops_and_goes_on_with_other_ranks(self):
        flags = ["--global_batch=192"]
        status, output = alone([*FLAGS, *flags, "--output_dir=" + self.directory("alone")])
        self.assertEqual(status, 0, output)
        expected = self.outcome("alone", output)["weights"]
        output = self.run_ranks(6, [*flags, "--stop_after=7"], "ranks")
        self.assertIn(f"stopped and saved; go on by the launcher of these ranks with:\n  {PROGRAM} --epochs=2", output)
        output = self.run_ranks(6, [*flags, "--resume", "--stop_after=13"], "ranks")
        self.assertIn("/save-000001-step-12: step 12, epoch 1, batch 12\n", output)
        status, output = alone([*FLAGS, *flags, "--resume", "--output_dir=" + self.directory("ranks")])
        self.assertEqual(status, 0, output)
        self.assertEqual(self.outcome("ranks", output)["weights"], expected)
        # Ranks that merge themselves: the same batches, other roundings.
        self.run_ranks(2, [*flags, "--stop_after=7"], "other")
        self.assertIn("epoch 2/2", self.run_ranks(3, [*flags, "--resume"], "other"))
        # Without a batch over all ranks, the ranks decide what an update is.
        self.run_ranks(2, ["--stop_after=4"], "fixed")
        output = self.run_ranks(3, ["--resume"], "fixed", status=1)
        self.assertEqual(output.count("error: "), 1)
        self.assertIn("the checkpoint was made with global_batch = 64, but now it is 96", output)

    def run_with_signal(self, number, name, *flags):
        """Sends the signal to rank 1 of 2 when the first epoch has ended: the launcher's status, and rank 0's output.

        Each rank writes into a file of its own: a launcher that ends a job may lose what it hasn't read yet.
        """
        inner = 'echo "pid $$" > "$OUTPUT.$OMPI_COMM_WORLD_RANK"; exec "$@" >> "$OUTPUT.$OMPI_COMM_WORLD_RANK" 2>&1'
        command = [*launcher(2), "sh", "-c", inner, "sh", *FLAGS, "--epochs=200", *flags,
                   "--output_dir=" + self.directory(name)]

        def output(rank):
            with open(f"{self.directory('output')}.{rank}", encoding="utf-8") as stream:
                return stream.read()

        with subprocess.Popen(command, env=variables({"OUTPUT": self.directory("output")}), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as process:
            while process.poll() is None:
                if os.path.exists(self.directory("output.0")) and "epoch 1/200  loss " in output(0):
                    os.kill(int(output(1).split()[1]), number)
                    break
                time.sleep(0.01)
            status = process.wait()
        return status, output(0)

    def test_a_signal_to_one_rank_stops_all(self):
        status, output = self.run_with_signal(signal.SIGTERM, "ranks")
        self.assertEqual(status, 128 + signal.SIGTERM, output)
        self.assertIn("stopped and saved", output)
        self.assertTrue(script.saves(self.directory("ranks"), "save-"))

    def test_a_rank_that_hangs_ends_all(self):
        status, output = self.run_with_signal(signal.SIGSTOP, "ranks", "--collective_timeout=3")
        self.assertNotEqual(status, 0, output)
        self.assertRegex(output, r"\nerror: .*rank 0 \(host .+\) has waited 3 s for rank 1 in .* step \d+\n")

    def test_killed_ranks_and_resumed_trainings_end_as_the_unbroken_one(self):
        done = subprocess.run([sys.executable, script.__file__, "--ranks=2", "--runs=2", "--kills=2", *FLAGS,
                               "--epochs=6", "--limit_samples=512", "--global_batch=64", "--save_every=4"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("\n2 of 2 runs ended as the unbroken one; ", done.stdout)
        self.assertIn("\nafter a kill, all ranks ended within ", done.stdout)

    def test_a_full_disk_of_rank_0_ends_all_and_loses_nothing(self):
        whole = self.outcome("whole", self.run_ranks(2, [], "whole"))
        self.run_ranks(2, ["--stop_after=12"], "ranks")
        # A file that grows beyond the limit, of units of 512 bytes, is an error as a full disk is.
        inner = 'if [ "$OMPI_COMM_WORLD_RANK" = 0 ]; then trap "" XFSZ; ulimit -f 8; fi; exec "$@"'
        status, output = mpirun(2, ["dash", "-c", inner, "dash", *FLAGS, "--resume",
                                    "--output_dir=" + self.directory("ranks")])
        self.assertNotEqual(status, 0, output)
        self.assertRegex(output, r"rank 0 \(host .+\): after step \d+: .*File too large")
        self.assertEqual(self.outcome("ranks", self.run_ranks(2, ["--resume"], "ranks")), whole)

    def test_other_weights_are_named(self):
        self.run_ranks(2, ["--stop_after=12"], "first")
        shutil.copytree(self.directory("first"), self.directory("other"))
        self.run_ranks(2, ["--resume", "--stop_after=20"], "first")
        inner = 'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then cd "$OTHER"; else cd "$FIRST"; fi; exec "$@"'
        program = os.path.abspath(PROGRAM)
        status, output = mpirun(2, ["sh", "-c", inner, "sh", program, *FLAGS[1:], "--initial_model=checkpoints",
                                    "--output_dir=" + self.directory("new")],
                                {"FIRST": self.directory("first"), "OTHER": self.directory("other")})
        self.assertEqual(status, 1, output)
        self.assertRegex(output, r"rank 1 \(host .+\): the hash of the weights and states is \w+, rank 0: \w+\n")

    def test_names_the_flag_that_differs(self):
        inner = 'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then set -- "$@" --batch_size=16; fi; exec "$@"'
        status, output = mpirun(2, ["sh", "-c", inner, "sh", *FLAGS, "--output_dir=" + self.directory("ranks")])
        self.assertEqual(status, 1, output)
        self.assertEqual(len(re.findall(r"^error: rank 1 \(host .*\): batch_size is 16, rank 0: 32$", output,
                                        re.MULTILINE)), 1, output)
        self.assertFalse(os.path.exists(self.directory("ranks")))

    def test_names_the_rank_that_fails(self):
        self.run_ranks(2, ["--stop_after=12"], "first")
        inner = 'if [ "$OMPI_COMM_WORLD_RANK" != 1 ]; then cd "$FIRST"; fi; exec "$@"'
        status, output = mpirun(3, ["sh", "-c", inner, "sh", os.path.abspath(PROGRAM), *FLAGS[1:],
                                    "--initial_model=checkpoints", "--output_dir=" + self.directory("ranks")],
                                {"FIRST": self.directory("first")})
        self.assertEqual(status, 1, output)
        self.assertRegex(output, r"(?m)^rank 1 \(host .+\): checkpoints: No such file or directory, expected a folder")
        self.assertFalse(os.path.exists(self.directory("ranks")))
        # The same on all ranks: each ends.
        output = self.run_ranks(3, ["--data=mnist:/no/such/place"], "ranks", status=1)
        self.assertIn("neither /no/such/place/train-images-idx3-ubyte nor ", output)

    def test_names_a_batch_that_ranks_cannot_share(self):
        output = self.run_ranks(2, ["--global_batch=96"], "ranks", status=1)
        self.assertIn("global_batch = 96: expected a multiple of 64, 2 ranks with a batch_size of 32", output)
        output = self.run_ranks(2, ["--global_batch=64", "--gradient_merge=2"], "ranks", status=1)
        self.assertIn("--gradient_merge", output)


if __name__ == "__main__":
    unittest.main()
