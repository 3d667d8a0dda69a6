"""model_bench as ranks that mpirun starts: they compute what one process does, and rank 0 has the figures."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "harness"))

from mpirun import mpirun  # noqa: E402

FLAGS = [os.path.abspath("tools/model_bench/model_bench"), "--model=mlp", "--batch_size=2", "--steps=2"]


class ModelBenchRanks(unittest.TestCase):
    def setUp(self):
        # pylint: disable-next=consider-using-with
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, name):
        return os.path.join(self.folder.name, name)

    def figures(self):
        with open(self.file("figures.json"), encoding="utf-8") as stream:
            return json.load(stream)

    def run_ranks(self, ranks, *flags, command=()):
        """The figures of the ranks, and their output."""
        status, output = mpirun(ranks, [*command, *FLAGS, "--json=" + self.file("figures.json"), *flags])
        self.assertEqual(status, 0, output)
        return self.figures(), output

    def test_ranks_train_like_one_process_on_the_same_batch(self):
        subprocess.run([*FLAGS, "--threads=1", "--nosplit", "--json=" + self.file("figures.json")], check=True,
                       stdout=subprocess.DEVNULL)
        alone = self.figures()
        self.assertEqual((alone["ranks"], alone["sent_bytes"]), (1, 0))
        # Half of the gradients goes to the other rank, and half of the sums: float32, of the parameters.
        sums = 4 * (28 * 28 * 256 + 256 + 256 * 256 + 256 + 256 * 10 + 10)
        # The decay needs whole sums, so half of the parameters comes on top where a rank updates only half.
        for flags, sent in (((), sums), (("--bucket_bytes=0",), sums), (("--overlap=on",), sums),
                            (("--shard_optimizer",), 1.5 * sums)):
            with self.subTest(flags):
                ranks, output = self.run_ranks(2, *flags)
                # The mean of two equal gradients is the gradient.
                self.assertEqual(ranks["weights_hash"], alone["weights_hash"])
                self.assertEqual(ranks["last_value"], alone["last_value"])
                self.assertEqual(ranks["ranks"], 2)
                self.assertEqual(ranks["reduction"], "ranks")
                # Beside them, few numbers, and what makes parts of equal size.
                self.assertAlmostEqual(ranks["sent_bytes"], sent, delta=1000)
                self.assertIn(f"2 ranks, each with such a batch; each sends {sent / 2**20:.2f} MB a step\n", output)
                # Rank 0 alone prints, and splits a step of both ranks.
                self.assertEqual(output.count("mlp, batch 2, 1 threads: "), 1)
                self.assertEqual(output.count(" op and kernel\n"), 1)
                self.assertIn("c_", output)

    def test_does_not_know_what_a_library_sends(self):
        figures, output = self.run_ranks(2, "--reduction=fast")
        self.assertIsNone(figures["sent_bytes"])
        self.assertEqual(figures["reduction"], "fast")
        self.assertIn("2 ranks, each with such a batch; the library that moves the gradients adds them\n", output)

    def test_ranks_share_the_cores(self):
        figures, _ = self.run_ranks(2, "--nosplit", command=["env", "-u", "OMP_NUM_THREADS"])
        self.assertEqual(figures["threads"], min(len(os.sched_getaffinity(0)), max(1, os.cpu_count() // 2)))

    def test_rank_0_chooses_the_kernels(self):
        kernels = self.file("kernels")
        first, output = self.run_ranks(2, "--nosplit", "--tune_kernels=" + kernels)
        self.assertRegex(output, r"\n[1-9]\d* kernels tuned, [1-9]\d* of them timed now")
        # Each is timed on one rank.
        timed = [line for line in output.splitlines() if line.startswith("tuning: ")]
        self.assertEqual(len(timed), len(set(line.split(":")[1] for line in timed)), timed)
        again, output = self.run_ranks(2, "--nosplit", "--tune_kernels=" + kernels)
        self.assertIn(" kernels tuned, 0 of them timed now", output)
        self.assertEqual(again["weights_hash"], first["weights_hash"])

    def test_names_what_is_wrong(self):
        inner = 'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then set -- "$@" --nosplit; fi; exec "$@"'
        status, output = mpirun(2, ["sh", "-c", inner, "sh", *FLAGS])
        self.assertEqual(status, 1, output)
        self.assertRegex(output, r"error: rank 1 \(host .*\): split is false, rank 0: true\n")
        status, output = mpirun(2, [*FLAGS, "--reduction=tree"])
        self.assertEqual(status, 1, output)
        self.assertIn('reduction "tree": expected auto, ranks or fast', output)


if __name__ == "__main__":
    unittest.main()
