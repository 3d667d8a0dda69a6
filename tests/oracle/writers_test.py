"""Tests that the programs for another framework can be written. run.sh checks the results."""
import json
import os
import subprocess
import tempfile
import unittest


def write(name, out, *flags):
    return subprocess.run([os.path.abspath(f"tests/oracle/{name}"), f"--out={out}", *flags], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)


def jobs_in(folder):
    with open(os.path.join(folder, "skiff_jobs.jsonl"), encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


class Writers(unittest.TestCase):
    def check(self, *command):
        with tempfile.TemporaryDirectory() as folder:
            result = write(command[0], folder, *command[1:])
            self.assertEqual(result.returncode, 0, result.stderr)
            jobs = jobs_in(folder)
            self.assertGreater(len(jobs), 0)
            for job in jobs:
                for path in (job["program"], job["feed"]):
                    self.assertTrue(os.path.exists(os.path.join(folder, path)), path)

    def test_write_trainings_by_every_optimizer(self):
        self.check("write_training_programs")

    def test_write_the_cases_of_an_op(self):
        self.check("write_op_programs", "--op=adam")


if __name__ == "__main__":
    unittest.main()
