"""What `skiff summary` says of programs."""
import json
import os
import subprocess
import unittest

PROGRAM = os.path.abspath("tests/tools/run_program/paddle_encoder/main.pb")


def run(*arguments):
    command = [os.path.abspath("tools/skiff/skiff"), "summary", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


class SummaryCommand(unittest.TestCase):
    def test_prints_a_line_for_each_layer_and_the_sums(self):
        result = run(PROGRAM)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = result.stdout.splitlines()
        self.assertRegex(lines[0], r"^layer +ops +output +parameters +trainable +MFLOP$")
        self.assertRegex(lines[-2], r"^total +[1-9][0-9,]* +[1-9][0-9,]* +")
        self.assertRegex(lines[-1], r"^parameters: [0-9.]+ MB; MFLOP: ")
        self.assertGreater(len(lines), 10)

    def test_prints_json(self):
        found = json.loads(run("--json", PROGRAM).stdout)
        self.assertEqual(found["parameters"], sum(layer["parameters"] for layer in found["layers"]))
        self.assertEqual(found["parameter_bytes"], 4 * found["parameters"])
        self.assertGreater(found["parameters"], 0)
        self.assertEqual(set(found["layers"][0]),
                         {"name", "ops", "output", "parameters", "trainable_parameters", "flop"})

    def test_a_missing_file_is_an_error(self):
        missing = run(PROGRAM + ".none")
        self.assertEqual((missing.returncode, missing.stdout), (1, ""))
        self.assertIn("main.pb.none", missing.stderr)
        self.assertEqual(run("--batch_size=-1", PROGRAM).returncode, 1)


if __name__ == "__main__":
    unittest.main()
