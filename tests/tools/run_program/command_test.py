"""What the command run_program does with its arguments."""
import os
import subprocess
import tempfile
import unittest

COMMAND = os.path.abspath("tools/run_program/run_program")


def run(*arguments):
    return subprocess.run([COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


class Command(unittest.TestCase):
    def test_tells_what_is_wrong_and_fails(self):
        result = run("--program=/nowhere/main.pb")
        self.assertEqual(result.returncode, 1)
        self.assertIn("error: ", result.stderr)
        self.assertIn("/nowhere/main.pb", result.stderr)

    def test_refuses_what_is_no_flag(self):
        result = run("main.pb")
        self.assertEqual(result.returncode, 2)
        self.assertIn('"main.pb" is no flag', result.stderr)

    def test_fails_if_a_job_fails(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as jobs:
            jobs.write('{"program": "/nowhere/main.pb"}\n')
            jobs.flush()
            result = run("--jobs=" + jobs.name)
        self.assertEqual(result.returncode, 1)
        self.assertIn("job 1: ", result.stdout)
        self.assertIn("0 ran, 1 failed", result.stdout)

    def test_succeeds_without_jobs(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as jobs:
            result = run("--jobs=" + jobs.name)
        self.assertEqual(result.returncode, 0)
        self.assertIn("0 ran, 0 failed", result.stdout)


if __name__ == "__main__":
    unittest.main()
