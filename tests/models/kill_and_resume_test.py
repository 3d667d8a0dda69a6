"""A few killed trainings, and what kill_and_resume.py says of programs that don't resume to the same end."""
import os
import stat
import subprocess
import sys
import tempfile
import unittest

# Ends with other weights each time.
FORGETFUL = """#!/usr/bin/python3
import os, sys, time
folder = [argument.partition("=")[2] for argument in sys.argv if argument.startswith("--output_dir=")][0]
os.makedirs(os.path.join(folder, "model"), exist_ok=True)
time.sleep(0.2)
open(os.path.join(folder, "training_log.jsonl"), "w").close()
print("weights " + os.urandom(8).hex())
"""


def kill_and_resume(*arguments):
    done = subprocess.run([sys.executable, "tests/models/kill_and_resume.py", *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


class KillAndResume(unittest.TestCase):
    def other_program(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program")
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(text)
            os.chmod(path, stat.S_IRWXU)
            return kill_and_resume("--runs=1", "--kills=1", path)

    def test_a_killed_training_ends_as_the_unbroken_one(self):
        status, output = kill_and_resume("--runs=2", "--kills=2", "models/mlp/train", "--threads=1", "--epochs=2",
                                         "--limit_samples=480", "--validation_samples=50", "--batch_size=32",
                                         "--hidden_units=16", "--dropout=0.2", "--save_every=1")
        self.assertEqual(status, 0, output)
        self.assertIn("\n2 of 2 runs ended as the unbroken one; ", output)

    def test_other_weights_are_told(self):
        status, output = self.other_program(FORGETFUL)
        self.assertEqual(status, 1, output)
        self.assertIn("  no: weights  none\n", output)
        self.assertIn("\n0 of 1 runs ended as the unbroken one; 1 kills, ", output)

    def test_a_program_that_fails_is_told(self):
        status, output = self.other_program("#!/bin/sh\necho no luck\nexit 3\n")
        self.assertEqual(status, 1)
        self.assertIn("exit status 3\nno luck\n", output)


if __name__ == "__main__":
    unittest.main()
