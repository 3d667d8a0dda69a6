#!/usr/bin/env python3
"""Pre-trains ERNIE in PyTorch as train_ernie did in Skiff, and compares.

usage: ernie_in_torch.py DIR...

Each DIR is what train_ernie filled (run.sh does both). From the same parameters and on the same batches, all losses
have to be the same in every step, and in float64 so have all parameters in the end. (In float32, Adam makes steps of
gradients that are hardly more than rounding, at first.) Differences are relative: of losses to the loss, of arrays to
their largest magnitude.

The network is that of torch_ernie.py, made of PyTorch's own modules; derivatives and Adam are PyTorch's.
Exit status: 0, 1 if something differs by more than its bound, 2 without PyTorch. Needs numpy and torch.
"""
import json
import os
import sys

if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
    print(__doc__)
    sys.exit(0 if sys.argv[1:] == ["--help"] else 2)

try:
    import numpy as np
    import torch
    from torch.nn import functional
except ImportError as error:
    print("%s can't do it (%s); give an interpreter with numpy and torch" % (sys.executable, error), file=sys.stderr)
    sys.exit(2)
from comparison import BOUNDS, compare_arrays, load_arrays, print_table, series_difference
from torch_ernie import Ernie, in_float32, skiff_parameters

SHOWN_PROBLEMS = 10
LEAST_WEIGHT = 1e-6


def losses_of(model, batch):
    """(loss of masked words, loss of the next sentence)."""
    words, sentences = model(batch)
    each = functional.cross_entropy(words, batch["masked_labels"].flatten(), reduction="none")
    weights = batch["masked_weights"].flatten()
    masked = (each * weights).sum() / weights.sum().clamp(min=LEAST_WEIGHT)
    return masked, functional.cross_entropy(sentences, batch["sentence_label"].flatten())


def clip(parameters, most):
    """Scales all gradients together, if their norm is larger than `most`."""
    norm = torch.sqrt(sum(parameter.grad.square().sum() for parameter in parameters))
    for parameter in parameters:
        parameter.grad *= most / norm.clamp(min=most)


def load_batches(folder, dtype):
    """Each feed of all steps, [steps, ...]."""
    feeds = {name: torch.tensor(array) for name, array in load_arrays(os.path.join(folder, "batches.npz")).items()}
    return {name: feed.to(dtype) if feed.is_floating_point() else feed for name, feed in feeds.items()}


def start(config, arrays):
    """A model with these parameters."""
    model = Ernie(config).to(torch.tensor(arrays["word_embedding"]).dtype)
    views = skiff_parameters(model)
    if views.keys() != arrays.keys():
        raise ValueError("only one has the parameters %s" % sorted(views.keys() ^ arrays.keys()))
    for name, view in views.items():
        view.copy_(torch.tensor(arrays[name]))
    return model


def train(description, feeds, initial):
    """(series of losses by name, final parameters)."""
    model = start(description["config"], initial)
    parameters = list(model.parameters())
    optimizer = torch.optim.Adam(parameters, lr=in_float32(description["learning_rate"]),
                                 betas=(in_float32(0.9), in_float32(0.999)), eps=in_float32(1e-8))
    series = {"loss": [], "masked_loss": []}
    for step in range(len(feeds["token_ids"])):
        masked, sentence = losses_of(model, {name: feed[step] for name, feed in feeds.items()})
        loss = masked + sentence
        optimizer.zero_grad()
        loss.backward()
        clip(parameters, description["clip_norm"])
        optimizer.step()
        series["loss"].append(loss.item())
        series["masked_loss"].append(masked.item())
    return series, {name: view.numpy() for name, view in skiff_parameters(model).items()}


def with_sentence_loss(series):
    """The series, and that of the sentence task, which is the rest of the loss."""
    arrays = {name: np.asarray(values, np.float64).reshape(-1) for name, values in series.items()}
    return {**arrays, "sentence_loss": arrays["loss"] - arrays["masked_loss"]}


def settled(parameters):
    """Without the biases of keys, which softmax cancels: Adam makes steps of gradients that are only rounding."""
    return {name: array for name, array in parameters.items() if not name.endswith("_key_fc.b_0")}


def check(folder):
    """(row of the table, problems in words)."""
    at = lambda name: os.path.join(folder, name)
    with open(at("description.json"), encoding="utf-8") as f:
        description = json.load(f)
    dtype = description["dtype"]
    initial = load_arrays(at("initial.npz"))
    series, parameters = train(description, load_batches(folder, getattr(torch, dtype)), initial)
    ours, theirs = with_sentence_loss(load_arrays(at("losses.npz"))), with_sentence_loss(series)
    differences = {name: series_difference(ours.get(name), expected) for name, expected in theirs.items()}
    problems = ["%s differs by %.1e: %s, in PyTorch %s" % (name, difference, ours.get(name), theirs[name])
                for name, difference in differences.items() if not difference <= BOUNDS[dtype]]
    state, wrong = compare_arrays("parameter", settled(load_arrays(at("final.npz"))), settled(parameters),
                                  BOUNDS[dtype])
    if dtype == "float64":
        problems += wrong
    row = [dtype, len(theirs["loss"]), "%.0e" % BOUNDS[dtype],
           *("%.4f to %.4f" % (theirs[name][0], theirs[name][-1]) for name in ("masked_loss", "sentence_loss")),
           *("%.1e" % difference for difference in (*differences.values(), state)), "WRONG" if problems else "ok"]
    return row, problems


def main(folders):
    rows, failures = [], []
    for folder in folders:
        row, problems = check(folder)
        rows.append(row)
        failures += problems[:SHOWN_PROBLEMS]
    print("ERNIE's pre-training in Skiff and in PyTorch: losses, and the largest relative differences")
    print_table(["dtype", "steps", "bound", "masked words", "sentences", "loss", "of masked words", "of sentences",
                 "final parameters", ""], rows)
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
