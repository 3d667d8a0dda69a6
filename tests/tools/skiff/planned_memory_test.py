"""Properties of planned memory that hold for every model, batch size and instruction set."""
import itertools
import json
import os
import subprocess
import unittest

# From the least to the most sharing.
POLICIES = ["none", "equal", "best_fit", "grow", "arena"]
BATCH_SIZES = {"mlp": [1, 8, 64], "lenet": [1, 2, 8, 64], "resnet20": [1, 2, 4, 8, 16, 32],
               "resnet18": [2, 8], "vgg11": [4, 8, 16]}
# "1.000"
MOST_OF_BOUND = 1.0005
# The bound doesn't know that buffers begin at multiples of 64 bytes.
LOST_TO_ALIGNMENT = 1024
# With more images another kernel may run that takes less scratch memory. In all, up to 26 % less (1 - 1 / 1.35).
MOST_SHRINKING = 1.35


def plan(model, batch_size, instruction_set, *flags):
    """The figures of a training step, as a processor with no more than this instruction set plans it."""
    command = [os.path.abspath("tools/skiff/skiff"), "memory", "--json", "--top=0", f"--model={model}",
               f"--batch_size={batch_size}", *flags]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                            env={**os.environ, "SKIFF_MAX_ISA": instruction_set})
    if result.returncode != 0:
        raise RuntimeError(result.stderr)
    return json.loads(result.stdout)


class PlannedMemory(unittest.TestCase):
    def check(self, instruction_set):
        if plan("mlp", 1, instruction_set)["instruction_set"] != instruction_set:
            self.skipTest(f"this processor has no {instruction_set}")
        for model, batch_sizes in BATCH_SIZES.items():
            planned = {}
            for batch_size in batch_sizes:
                with self.subTest(f"{model}, batch {batch_size}"):
                    for flags in ((), ("--recompute=nothing",)):
                        figures = plan(model, batch_size, instruction_set, *flags)
                        rows = {row["policy"]: row for row in figures["policies"]}
                        self.check_policies(rows)
                    # What is computed again differs from batch to batch.
                    planned[batch_size] = rows["arena"]["planned_bytes"]
            with self.subTest(model):
                self.check_growth(planned)

    def check_policies(self, rows):
        arena = rows["arena"]
        self.assertGreaterEqual(arena["planned_bytes"], arena["max_live_bytes"])
        self.assertLess(arena["planned_bytes"], MOST_OF_BOUND * arena["max_live_bytes"] + LOST_TO_ALIGNMENT)
        for less, more in itertools.pairwise(POLICIES):
            self.assertLessEqual(rows[more]["planned_bytes"], rows[less]["planned_bytes"], f"{less}, {more}")

    # More images don't take much less memory, and at most in proportion more.
    def check_growth(self, planned):
        for (batch_size, planned_bytes), (larger, more_bytes) in itertools.pairwise(sorted(planned.items())):
            self.assertLessEqual(planned_bytes, MOST_SHRINKING * more_bytes, f"batch {batch_size}, {larger}")
            self.assertLessEqual(more_bytes, larger / batch_size * planned_bytes, f"batch {batch_size}, {larger}")

    def test_baseline(self):
        self.check("baseline")

    def test_avx2(self):
        self.check("avx2")

    def test_avx512(self):
        self.check("avx512")


if __name__ == "__main__":
    unittest.main()
