"""Tests a few killed trainings, and that kill_and_resume.py detects programs that don't resume to the same end."""
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import kill_and_resume as script  # noqa: E402

# A training of one epoch whose %(what)s is another one each time; so are the times in its log. It has a checkpoint only
# at its end, and refuses a directory with a model but without one.
UNFAITHFUL = """#!/usr/bin/python3
import json, os, sys, time
folder = [argument.partition("=")[2] for argument in sys.argv if argument.startswith("--output_dir=")][0]
os.makedirs(os.path.join(folder, "model"), exist_ok="--resume" in sys.argv)
time.sleep(0.2)
def value(of):
    return os.urandom(8).hex() if of == "%(what)s" else "0123456789abcdef"
with open(os.path.join(folder, "model", "__params__"), "w") as stream:
    stream.write(value("model"))
with open(os.path.join(folder, "training_log.jsonl"), "w") as stream:
    json.dump({"epoch": 1, "loss": value("log"), "seconds": time.time(), "samples_per_second": time.time()}, stream)
checkpoint = os.path.join(folder, "checkpoints", "save-000001-step-1")
os.makedirs(checkpoint, exist_ok=True)
with open(os.path.join(checkpoint, "tensors"), "w") as stream:
    stream.write(value("checkpoint"))
print("weights " + value("weights"))
"""

# With all that draws random numbers: dropout, shuffling, the masks and pairs of sentences of a reader that reads ahead,
# and ragged batches of texts that are sorted by length in parts and lose words; and with a state that batches carry on.
PERCEPTRON = ["--limit_samples=480", "--validation_samples=50", "--batch_size=32", "--hidden_units=16",
              "--dropout=0.2"]
TRAININGS = [
    ("models/mlp/train", PERCEPTRON),
    # Checkpoints have master weights, and averages of them.
    ("models/mlp/train", [*PERCEPTRON, "--precision=bfloat16", "--model_average=ema", "--ema_decay=0.9"]),
    # Checkpoints have a loss scale. It is halved twice: the gradients of so few samples overflow at first.
    ("models/mlp/train", [*PERCEPTRON, "--precision=float16", "--batch_size=8", "--limit_samples=240"]),
    ("models/ernie/train", ["--world_documents=300", "--sentence_tasks=next_sentence,reordering,distance", "--length=48",
                            "--batch_size=16", "--warmup=5"]),
    ("models/text_classifier/train", ["--network=gru", "--most_tokens=400", "--vocabulary_size=200", "--save_every=25",
                                      "--embedding=8", "--hidden=8", "--word_dropout=0.2"]),
    ("models/seq2seq/train", ["--embedding=8", "--hidden=8", "--batch_size=64", "--dropout=0.1"]),
    ("models/char_rnn/train", ["--layers=2", "--embedding=8", "--hidden=8", "--steps=300", "--batch_size=16"]),
]


def kill_and_resume(*arguments):
    done = subprocess.run([sys.executable, os.path.join(HERE, "kill_and_resume.py"), *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


class KillAndResume(unittest.TestCase):
    def other_program(self, text, *flags):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program")
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(text)
            os.chmod(path, stat.S_IRWXU)
            return kill_and_resume("--runs=1", "--kills=1", path, *flags)

    def test_a_killed_training_ends_as_the_unbroken_one(self):
        for program, flags in TRAININGS:
            with self.subTest(program=program, flags=flags):
                status, output = kill_and_resume("--runs=2", "--kills=2", program, "--threads=1", "--epochs=2",
                                                 "--save_every=1", *flags)
                self.assertEqual(status, 0, output)
                self.assertIn("\n2 of 2 runs ended as the unbroken one; ", output)

    def test_another_end_is_told(self):
        for what in ("weights", "model", "log", "checkpoint"):
            with self.subTest(what):
                status, output = self.other_program(UNFAITHFUL % {"what": what})
                self.assertEqual(status, 1, output)
                self.assertRegex(output, r"  no: %s  (none|1)\n" % what)
                self.assertIn("\n0 of 1 runs ended as the unbroken one; 1 kills, 0 saves cut off\n", output)

    def test_times_may_differ(self):
        status, output = self.other_program(UNFAITHFUL % {"what": "time"})
        self.assertEqual(status, 0, output)

    def test_a_program_that_fails_is_told(self):
        status, output = self.other_program("#!/bin/sh\necho no luck\nexit 3\n")
        self.assertEqual(status, 1)
        self.assertIn("exit status 3\nno luck\n", output)

    def test_what_stands_behind_the_program_is_its_own(self):
        _, output = self.other_program("#!/bin/sh\necho got $*\nexit 3\n", "--seed=3", "--kil", "4", "--runs=0")
        self.assertIn("\ngot --seed=3 --kil 4 --runs=0 --output_dir=", output)

    def test_flags_are_written_out(self):
        status, output = kill_and_resume("--run=1", "true")
        self.assertEqual(status, 2)
        self.assertIn("unrecognized arguments: --run=1", output)


class CutOffSaves(unittest.TestCase):
    def test_each_is_counted_at_the_kill_that_left_it(self):
        def put(name, age):
            path = os.path.join(folder, "checkpoints", name)
            os.makedirs(path, exist_ok=True)
            with open(os.path.join(path, "tensors"), "w", encoding="utf-8"):
                pass
            os.utime(os.path.join(path, "tensors"), (time.time() - age,) * 2)

        def killed_while_saving(*_):
            put("save-000001-step-4", 0)
            put(".tmp-save-000002-step-5", 0)
            put(".tmp-save-removed-save-000001-step-3", 0)

        def killed_before_its_first_save(*_):
            put(".tmp-save-000002-step-5", 10)
            shutil.rmtree(os.path.join(folder, "checkpoints/.tmp-save-removed-save-000001-step-3"))

        steps = iter([killed_while_saving, killed_before_its_first_save, killed_while_saving, lambda *_: "the output"])
        with tempfile.TemporaryDirectory() as folder, \
             mock.patch.object(script.Training, "run", lambda *arguments: next(steps)(*arguments)), \
             mock.patch.object(script, "outcome", lambda folder, output: output):
            self.assertEqual(script.Training(["program"], 0).killed_and_resumed(folder, 1, 3),
                             ("the output", ["4", "4", "4"], 2))


if __name__ == "__main__":
    unittest.main()
