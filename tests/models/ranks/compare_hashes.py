#!/usr/bin/python3
"""Checks that trainings of all models under mpirun end with the weights of one process.

usage: compare_hashes.py [--ranks=N]... [--models=NAME,...] [FOLDER]

    bazel build --config=opt //models/...
    tests/models/ranks/compare_hashes.py

FOLDER has the train programs, as bazel-bin/models, the default, has. Each model is trained for two short epochs by one
process with --global_batch, and by N ranks (default: 2, 3 and 4, one after the other) with the same batch. The weights,
whose hash the programs print, must be equal. Exit status: 0 if all are; 1 if some aren't, or a program fails.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "harness"))

from mpirun import mpirun  # noqa: E402

IMAGES = ["--limit_samples=288", "--validation_samples=50"]
# A program, its flags, and the batch of a rank. 12 batches of each rank are whole runs of 2, 3 and 4 ranks.
TRAININGS = {
    "mlp": ("mlp/train", [*IMAGES, "--hidden_units=16", "--dropout=0.2"], 12),
    "lenet": ("lenet/train", IMAGES, 12),
    "resnet": ("resnet/train", [*IMAGES, "--model_average=ema"], 12),
    "vgg": ("vgg/train", ["--limit_samples=48", "--validation_samples=20"], 2),
    "ernie": ("ernie/train", ["--world_documents=100", "--length=32", "--warmup=5"], 8),
    "text_classifier": ("text_classifier/train", ["--network=gru", "--vocabulary_size=200", "--embedding=8",
                                                  "--hidden=8", "--word_dropout=0.2"], 32),
    "tagger": ("tagger/train", ["--sentences=384", "--embedding=8", "--hidden=8", "--dropout=0.1"], 16),
    "seq2seq": ("seq2seq/train", ["--embedding=8", "--hidden=8", "--dropout=0.1"], 64),
    "char_rnn": ("char_rnn/train", ["--nocarry_states", "--embedding=8", "--hidden=8", "--steps=50"], 8),
}


class Failed(Exception):
    pass


def weights(command, status, output):
    found = re.search(r"^weights ([0-9a-f]{16})$", output, re.MULTILINE)
    if status != 0 or not found:
        raise Failed("%s: exit status %d\n%s" % (" ".join(command), status, output))
    return found.group(1)


def alone(command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    return weights(command, done.returncode, done.stdout)


def on_ranks(ranks, command):
    return weights(command, *mpirun(ranks, command, seconds=1800))


def compare(name, folder, all_ranks, output):
    """Prints a line for each number of ranks: how many differ."""
    program, flags, batch = TRAININGS[name]
    different = 0
    for ranks in all_ranks:
        command = [os.path.join(folder, program), *flags, "--epochs=2", "--threads=1", "--batch_size=%d" % batch,
                   "--global_batch=%d" % (batch * ranks)]
        expected = alone([*command, "--output_dir=%s/%s-%d-alone" % (output, name, ranks)])
        found = on_ranks(ranks, [*command, "--output_dir=%s/%s-%d" % (output, name, ranks)])
        is_equal = found == expected
        print("%-16s %d ranks  %s  one process  %s  %s" % (name, ranks, found, expected,
                                                           "equal" if is_equal else "DIFFERENT"), flush=True)
        different += not is_equal
    return different


def main():
    parser = argparse.ArgumentParser(usage="compare_hashes.py [--ranks=N]... [--models=NAME,...] [FOLDER]")
    parser.add_argument("--ranks", type=int, action="append", help="numbers of ranks (default 2, 3 and 4)")
    parser.add_argument("--models", default=",".join(TRAININGS), help="of %s (default: all)" % ", ".join(TRAININGS))
    parser.add_argument("folder", nargs="?", default="bazel-bin/models", help="of the train programs")
    options = parser.parse_args()
    names = options.models.split(",")
    if not set(names) <= TRAININGS.keys():
        parser.error("expected models of " + ", ".join(TRAININGS))
    with tempfile.TemporaryDirectory(prefix="compare_hashes-") as output:
        different = sum(compare(name, os.path.abspath(options.folder), options.ranks or [2, 3, 4], output)
                        for name in names)
    return 1 if different else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        sys.exit("error: %s" % failure)
