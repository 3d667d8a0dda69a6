"""Ranks that mpirun starts: messages, sums, and how failures end."""
import os
import subprocess
import unittest

from tests.harness.mpirun import mpirun

PROGRAM = "tests/framework/comm/mpi_program"


def run(case, time_limit=60, ranks=3, **environment):
    """The exit status and the output of a case of mpi_program.cc."""
    return mpirun(ranks, [PROGRAM, case, str(time_limit)], environment)


class Works(unittest.TestCase):
    def assert_works(self, case, **options):
        status, output = run(case, **options)
        self.assertEqual(status, 0, output)
        return output

    def test_ranks_know_their_place(self):
        output = self.assert_works("place")
        for rank in range(3):
            self.assertRegex(output, rf"(?m)^rank {rank} \(host .+\) of 3, {rank} of 3 here$")

    def test_moves_any_messages(self):
        for ranks in (2, 5):
            self.assert_works("messages", ranks=ranks)

    def test_moves_messages_of_several_pieces(self):
        self.assert_works("many_bytes")

    def test_copies_twice_where_processes_may_not_read_each_other(self):
        self.assert_works("many_bytes", OMPI_MCA_btl_vader_single_copy_mechanism="none")

    def test_adds_numbers(self):
        self.assert_works("sum")

    def test_gathers(self):
        self.assert_works("gather")

    def test_starts_once(self):
        self.assertIn("MPI has started in this process already", self.assert_works("start_twice"))

    def test_forked_children_end_alone(self):
        self.assert_works("fork")

    def test_ranks_wait_for_the_last_at_the_end(self):
        self.assert_works("leave_early", time_limit=1)

    def test_one_rank_is_no_launch(self):
        status, output = run("place", ranks=1)
        self.assertNotEqual(status, 0)
        self.assertIn("error: no launcher has started ranks", output)


class Fails(unittest.TestCase):
    def assert_fails(self, case, message, time_limit=60):
        """All ranks end, and the output has the message."""
        status, output = run(case, time_limit)
        self.assertNotEqual(status, 0, output)
        self.assertRegex(output, message)

    def test_other_bytes_than_expected(self):
        for case, message in {
                "longer": "error: rank 1 sends more bytes to rank 2 than it expects, 8 in the case longer",
                "shorter": "error: rank 1 sends 8 bytes to rank 2, which expects 12 in the case shorter",
                "empty": "error: rank 1 sends 0 bytes to rank 2, which expects 12 in the case empty",
                "unexpected": "error: rank 1 sends more bytes to rank 2 than it expects, 0 in",
                "more_pieces": "error: rank 1 sends more bytes to rank 2 than it expects, 16777216 in",
                "fewer_pieces": "error: rank 1 sends 100 bytes to rank 2, which expects 41943053 in",
                "one_piece": "error: rank 1 sends 16777216 bytes to rank 2, which expects 41943053 in",
                "shorter_rest": "error: rank 1 sends 41943052 bytes to rank 2, which expects 41943053 in",
        }.items():
            with self.subTest(case):
                self.assert_fails(case, message)

    def test_rank_that_hangs(self):
        # A rank that is merely late may be missing, too.
        self.assert_fails("sleep", r"error: rank [02] \(host .+\) has waited 1 s for ranks? (0, )?1(, 2)? in the case "
                          "sleep\n", time_limit=1)

    def test_rank_that_hangs_before_a_sum(self):
        self.assert_fails("sum_without",
                          r"error: rank [02] \(host .+\) has waited 1 s for other ranks in the case sum_without\n",
                          time_limit=1)

    def test_rank_that_is_stopped(self):
        self.assert_fails("stop", r"error: rank [02] \(host .+\) has waited 2 s for rank 1 in the case stop\n", time_limit=2)

    def test_abort(self):
        self.assert_fails("abort", r"(?m)^rank 1 \(host .+\): the disk is full$")

    def test_exit_without_an_end(self):
        self.assert_fails("exit", r"(?m)^rank 1 \(host .+\): exits before all ranks have ended$")

    def test_exception(self):
        self.assert_fails("throw", r"(?ms)^error: the loss is nan$.*^rank 1 \(host .+\): exits before all ranks have")

    def test_kill(self):
        self.assert_fails("kill", "(?s)exited on signal 9")

    def test_launcher_of_another_library(self):
        done = subprocess.run([PROGRAM, "place", "1"], env={**os.environ, "PMI_SIZE": "3"}, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("PMI_SIZE=3 (a launcher has started ranks), but MPI knows one rank only.", done.stdout)


if __name__ == "__main__":
    unittest.main()
