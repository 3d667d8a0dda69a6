#!/usr/bin/env python3
"""Runs a PyTorch model's weights in Skiff's ERNIE, and compares the scores.

usage: ernie_from_torch.py BAZEL_BIN

The network of torch_ernie.py, made of PyTorch's own modules, has random weights. They are saved by safetensors' own library,
under the names of Skiff's parameters, matrices transposed. BAZEL_BIN/models/ernie/train makes an ERNIE of the same
sizes, and BAZEL_BIN/tools/run_program/run_program runs it with these weights.

Differences are relative to the largest score. Exit status: 0, 1 if scores differ by more than the bound, 2 if it can't
be checked. Needs numpy, torch and safetensors.
"""
import json
import os
import subprocess
import sys
import tempfile

if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
    print(__doc__)
    sys.exit(0 if sys.argv[1:] == ["--help"] else 2)

try:
    import numpy as np
    import torch
    from safetensors.torch import save_file
    from torch import nn
except ImportError as error:
    print("%s can't do it (%s); give an interpreter with numpy, torch and safetensors" % (sys.executable, error),
          file=sys.stderr)
    sys.exit(2)
from comparison import BOUNDS, compare_arrays, load_arrays
from torch_ernie import Ernie, skiff_parameters

LENGTH, MASKED, SEQUENCES = 64, 12, 6
# In the order of the model's outputs.
OUTPUTS = ["save_infer_model/scale_0", "save_infer_model/scale_1"]


def random_model(config):
    """Every parameter is random, so that none can be mistaken for another."""
    model = Ernie(config).eval()
    for name, parameter in model.named_parameters():
        is_scale = "norm" in name and name.endswith("weight")
        nn.init.normal_(parameter, mean=1.0 if is_scale else 0.0, std=0.2)
    return model


def random_feeds(config, draw):
    """Sequences of several lengths; the masked positions are rows of all tokens."""
    lengths = draw.integers(LENGTH // 2, LENGTH + 1, SEQUENCES)
    shape = (SEQUENCES, LENGTH)
    masked = np.stack([draw.choice(length, MASKED, replace=False) for length in lengths])
    return {"token_ids": draw.integers(0, config["vocab_size"], shape),
            "sentence_ids": draw.integers(0, config["type_vocab_size"], shape),
            "position_ids": np.tile(np.arange(LENGTH), (SEQUENCES, 1)),
            "input_mask": (np.arange(LENGTH) < lengths[:, None]).astype(np.float32),
            "masked_positions": masked + LENGTH * np.arange(SEQUENCES)[:, None]}


def train_in_skiff(bazel_bin, folder):
    """The folder of a saved model, whose weights don't matter."""
    subprocess.run([os.path.join(bazel_bin, "models/ernie/train"), "--output_dir=" + folder, "--data=world",
                    "--world_documents=60", "--sentence_tasks=next_sentence", "--epochs=1", "--warmup=0",
                    "--length=%d" % LENGTH, "--most_masked=%d" % MASKED], check=True, stdout=subprocess.DEVNULL)
    return os.path.join(folder, "model")


def run_in_skiff(bazel_bin, model, weights, feeds, folder):
    """The outputs by name."""
    feed, out = os.path.join(folder, "feed.npz"), os.path.join(folder, "out.npz")
    np.savez(feed, **feeds)
    subprocess.run([os.path.join(bazel_bin, "tools/run_program/run_program"), "--program=" + model + "/__model__",
                    "--params=" + weights, "--feed=" + feed, "--fetch=" + ",".join(OUTPUTS), "--out=" + out],
                   check=True, stdout=subprocess.DEVNULL)
    return load_arrays(out)


def check(bazel_bin, folder):
    """(largest difference, problems in words)."""
    saved = train_in_skiff(bazel_bin, os.path.join(folder, "run"))
    with open(os.path.join(saved, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    torch.manual_seed(1)
    model = random_model(config)
    weights = os.path.join(folder, "weights.safetensors")
    parameters = {name: view.contiguous() for name, view in skiff_parameters(model).items()}
    save_file(parameters, weights, metadata={"format": "pt"})
    feeds = random_feeds(config, np.random.default_rng(1))
    with torch.no_grad():
        scores = model({name: torch.tensor(array) for name, array in feeds.items()})
    expected = {name: score.numpy() for name, score in zip(OUTPUTS, scores)}
    return compare_arrays("output", run_in_skiff(bazel_bin, saved, weights, feeds, folder), expected,
                          BOUNDS["float32"])


def main(bazel_bin):
    with tempfile.TemporaryDirectory() as folder:
        try:
            difference, problems = check(os.path.abspath(bazel_bin), folder)
        except (OSError, subprocess.CalledProcessError) as error:
            print(error, file=sys.stderr)
            return 2
    print("ERNIE with weights from PyTorch: scores differ by %.1e, bound %.0e" % (difference, BOUNDS["float32"]))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
