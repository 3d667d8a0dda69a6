"""What `skiff verify` finds in programs."""
import json
import os
import subprocess
import tempfile
import unittest

PROGRAM = os.path.abspath("tests/tools/run_program/paddle_encoder/main.pb")


def run(*arguments):
    command = [os.path.abspath("tools/skiff/skiff"), "verify", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


class VerifyCommand(unittest.TestCase):
    def verify_bytes(self, program, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "main.pb")
            with open(path, "wb") as f:
                f.write(program)
            return run(path, *arguments)

    def test_warns_of_attributes_that_paddlepaddle_wrote_twice(self):
        result = run(PROGRAM)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        *warnings, summary = result.stdout.splitlines()
        self.assertEqual(len(warnings), 8)
        for warning in warnings:
            self.assertRegex(
                warning, r'^warning: block 0, op #\d+ "reshape2(_grad)?": each of these attributes is there more than '
                r"once, and its last value counts: mkldnn_data_type, use_mkldnn, use_quantizer$")
        self.assertRegex(summary, r"^.*/main\.pb: 1 block, \d+ ops; 0 errors, 8 warnings$")

    def test_names_the_ops_that_cannot_run(self):
        with open(PROGRAM, "rb") as f:
            program = f.read().replace(b"layer_norm", b"layer_nrom")
        result = self.verify_bytes(program)
        self.assertEqual((result.returncode, result.stderr), (1, ""))
        errors = [line for line in result.stdout.splitlines() if line.startswith("error: ")]
        self.assertEqual(len(errors), 4)  # two ops and their gradients
        self.assertRegex(errors[0], r"^error: layer_nrom \(block 0, op #\d+\): .*layer_nrom")
        self.assertRegex(result.stdout.splitlines()[-1], r"ops; 4 errors, 8 warnings$")

    def test_prints_json(self):
        result = run("--json", PROGRAM)
        self.assertEqual(result.returncode, 0, result.stderr)
        found = json.loads(result.stdout)
        self.assertEqual((found["program"], found["blocks"], found["errors"]), (PROGRAM, 1, []))
        self.assertEqual(len(found["warnings"]), 8)
        self.assertGreater(found["ops"], 100)

    def test_a_file_that_holds_no_program_is_an_error(self):
        with open(PROGRAM, "rb") as f:
            truncated = self.verify_bytes(f.read()[:-1])
        self.assertEqual((truncated.returncode, truncated.stdout), (1, ""))
        self.assertRegex(truncated.stderr, r"^error: .*main\.pb: the \d+ bytes are no ProgramDesc\n$")
        missing = run(PROGRAM + ".none")
        self.assertEqual(missing.returncode, 1)
        self.assertIn("main.pb.none", missing.stderr)

    def test_needs_a_file(self):
        result = run()
        self.assertEqual(result.returncode, 2)
        self.assertIn("usage: skiff verify FILE", result.stderr)


if __name__ == "__main__":
    unittest.main()
