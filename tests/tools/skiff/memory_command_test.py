"""What `skiff memory` prints, and what it writes."""
import json
import os
import re
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as ET

POLICIES = ["none", "equal", "best_fit", "grow", "arena"]


def run(*arguments, **environment):
    command = [os.path.abspath("tools/skiff/skiff"), "memory", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          env={**os.environ, **environment})


class MemoryCommand(unittest.TestCase):
    def figures(self, *arguments):
        result = run("--json", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_compares_all_policies(self):
        figures = self.figures("--model=lenet", "--batch_size=4", "--top=3")
        self.assertEqual([row["policy"] for row in figures["policies"]], POLICIES)
        by_policy = {row["policy"]: row for row in figures["policies"]}
        for row in figures["policies"]:
            self.assertGreaterEqual(row["planned_bytes"], row["max_live_bytes"])
            # Each place is rounded up to the alignment.
            self.assertLessEqual(row["planned_bytes"], 1.01 * row["unshared_bytes"])
            # A block may fit into the rest of a page that is reserved already.
            self.assertGreater(row["reserved_bytes"] + 4096, row["planned_bytes"])
            self.assertEqual(max(row["live_bytes"]), row["max_live_bytes"])
            self.assertEqual(len(row["top"]), 3)
            sizes = [block["bytes"] for block in row["top"]]
            self.assertEqual(sizes, sorted(sizes, reverse=True))
        self.assertEqual(by_policy["none"]["saving"] < by_policy["arena"]["saving"], True)
        for better, worse in zip(POLICIES[1:], POLICIES):
            self.assertLessEqual(by_policy[better]["planned_bytes"], by_policy[worse]["planned_bytes"])

    def test_shows_the_bodies_of_loops(self):
        figures = self.figures("--model=char_lstm", "--batch_size=2", "--policy=arena")
        loops = figures["policies"][0]["loops"]
        self.assertEqual([loop["op"] for loop in loops], ["recurrent", "recurrent_grad"])
        for loop in loops:
            self.assertEqual(max(loop["live_bytes"]), loop["max_live_bytes"])
            self.assertLess(loop["planned_bytes"], figures["policies"][0]["planned_bytes"])
        result = run("--model=char_lstm", "--batch_size=2", "--policy=arena")
        self.assertRegex(result.stdout, r"body of instruction \d+ \(recurrent\): [\d.]+ MiB planned")

    def test_plans_models_in_half(self):
        def persistable_bytes(precision, *arguments):
            figures = self.figures("--model=mlp", "--policy=arena", f"--precision={precision}", *arguments)
            self.assertEqual(figures["precision"], precision)
            return figures["persistable_bytes"]

        # A training keeps float32 weights beside those in half.
        self.assertGreater(persistable_bytes("bfloat16"), persistable_bytes("float32"))
        in_half = persistable_bytes("bfloat16", "--inference")
        self.assertLess(in_half, 0.51 * persistable_bytes("float32", "--inference"))

    def test_prints_a_table_and_the_largest_tensors(self):
        result = run("--model=lenet", "--batch_size=4", "--top=2")
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stdout.splitlines()
        self.assertRegex(lines[0], r"^lenet, batch 4, training, recompute almost_free, \w+: \d+ instructions, ")
        self.assertEqual([line.split()[0] for line in lines[2:7]], POLICIES)
        self.assertRegex(lines[8], r"^largest of the \d+ live at the peak, instruction \d+ \(\w+.*\), policy arena:$")
        self.assertEqual(len(lines), 12)

    def test_recomputes(self):
        plain = self.figures("--model=resnet20", "--batch_size=2", "--policy=arena",
                             "--recompute=nothing")["policies"][0]
        self.assertEqual(plain["recomputed"], {"instructions": 0, "saved_bytes": 0, "cost_share": 0.0})
        least = self.figures("--model=resnet20", "--batch_size=2", "--policy=arena",
                             "--recompute=least_memory")["policies"][0]
        self.assertLess(least["planned_bytes"], 0.8 * plain["planned_bytes"])
        budget = int(0.85 * plain["planned_bytes"])
        met = self.figures("--model=resnet20", "--batch_size=2", "--policy=arena", "--recompute=budget",
                           f"--budget_bytes={budget}")["policies"][0]
        self.assertLessEqual(met["planned_bytes"], budget)
        rows = self.figures("--model=resnet20", "--batch_size=2", "--recompute=cheap_ops")["policies"]
        self.assertEqual([row["policy"] for row in rows], POLICIES[1:])
        refused = run("--model=resnet20", "--batch_size=2", "--policy=arena", "--recompute=budget", "--budget_bytes=1")
        self.assertEqual(refused.returncode, 1)
        message = re.fullmatch(r"error: option memory\.budget_bytes = 1: the arena takes at least (\d+) bytes, "
                               r"however much is recomputed\n", refused.stderr)
        self.assertIsNotNone(message, refused.stderr)
        self.assertLessEqual(int(message[1]), least["planned_bytes"])

    def test_recomputes_by_default_what_is_almost_free(self):
        by_default, kept = (self.figures("--model=resnet20", "--batch_size=32", "--policy=arena", *arguments)
                            for arguments in ([], ["--recompute=nothing"]))
        row = by_default["policies"][0]
        self.assertEqual(by_default["recompute"], "almost_free")
        self.assertLess(row["planned_bytes"], 0.9 * kept["policies"][0]["planned_bytes"])
        recomputed = row["recomputed"]
        self.assertGreater(recomputed["instructions"], 0)
        self.assertLessEqual(recomputed["cost_share"], 0.02)
        result = run("--model=resnet20", "--batch_size=32")
        self.assertRegex(result.stdout, r"\npolicy arena: %d ops are computed again, which saves [\d.]+ MiB "
                                        r"for about [\d.]+ %% of a step\n" % recomputed["instructions"])

    def test_draws_the_arena(self):
        with tempfile.TemporaryDirectory() as folder:
            result = run("--model=lenet", "--batch_size=4", "--svg=arena.svg", BUILD_WORKING_DIRECTORY=folder)
            self.assertEqual(result.returncode, 0, result.stderr)
            svg = ET.parse(os.path.join(folder, "arena.svg")).getroot()
            titles = [title.text for title in svg.iter("{http://www.w3.org/2000/svg}title")]
            self.assertTrue(any(re.match(r"conv2d_0.*: [0-9.e-]+ MiB by conv2d", text) for text in titles), titles[:5])

    def test_refuses_what_it_cannot_do(self):
        for arguments, message in (
                (["--model=none"], 'model "none": expected one of '),
                (["--policy=best"], 'reuse policy "best": expected one of none, equal, best_fit, grow, arena'),
                (["--precision=half"], 'precision "half": expected float32, bfloat16 or float16'),
                (["--recompute=all"], 'recompute "all": expected one of nothing, almost_free, cheap_ops, '),
                (["--batch_size=0"], "--batch_size=0 --top=10: expected a positive batch")):
            with self.subTest(arguments):
                result = run(*arguments)
                self.assertEqual(result.returncode, 1)
                self.assertTrue(result.stderr.startswith("error: " + message), result.stderr)
                self.assertEqual(result.stdout, "")


if __name__ == "__main__":
    unittest.main()
