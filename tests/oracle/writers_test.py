"""Tests that the programs for another framework can be written. run.sh checks the results."""
import json
import os
import subprocess
import tempfile
import unittest
import zipfile


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

    def test_write_what_ernie_learned(self):
        with tempfile.TemporaryDirectory() as folder:
            result = write("train_ernie", folder, "--steps=2", "--batch_size=2")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(sorted(os.listdir(folder)),
                             ["batches.npz", "description.json", "final.npz", "initial.npz", "losses.npz"])
            with open(os.path.join(folder, "description.json"), encoding="utf-8") as stream:
                self.assertEqual(json.load(stream)["config"]["hidden_dropout_prob"], 0)
            names = zipfile.ZipFile(os.path.join(folder, "initial.npz")).namelist()
            self.assertIn("word_embedding.npy", names)
            self.assertEqual(zipfile.ZipFile(os.path.join(folder, "final.npz")).namelist(), names)

    def test_write_the_cases_of_an_op(self):
        self.check("write_op_programs", "--op=adam")


if __name__ == "__main__":
    unittest.main()
