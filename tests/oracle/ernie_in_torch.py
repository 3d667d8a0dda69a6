#!/usr/bin/env python3
"""Pre-trains ERNIE in PyTorch as train_ernie did in Skiff, and compares.

usage: ernie_in_torch.py DIR...

Each DIR is what train_ernie filled (run.sh does both). From the same parameters and on the same batches, all losses
have to be the same in every step, and in float64 so have all parameters in the end. (In float32, Adam makes steps of
gradients that are hardly more than rounding, at first.) Differences are relative: of losses to the loss, of arrays to
their largest magnitude.

The network is that of the papers (models/ernie/ernie.h), in PyTorch's own functions and by its own derivatives.
Exit status: 0, 1 if something differs by more than its bound, 2 without PyTorch. Needs numpy and torch.
"""
import json
import math
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

SHOWN_PROBLEMS = 10
MASKED_SCORE = 1e4
LEAST_WEIGHT = 1e-6


def in_float32(number):
    """Attributes of Skiff's ops have 32 bits, whatever the tensors have."""
    return float(np.float32(number))


class Twin:
    """The network. `weights` are tensors by the names of Skiff's parameters."""

    def __init__(self, config, weights):
        self.weights = weights
        self.layers = config["num_hidden_layers"]
        self.heads = config["num_attention_heads"]
        self.activation = getattr(functional, config["hidden_act"])

    def dense(self, x, name):
        return x @ self.weights[name + ".w_0"] + self.weights[name + ".b_0"]

    def norm(self, x, name):
        return functional.layer_norm(x, x.shape[-1:], self.weights[name + "_layer_norm_scale"],
                                     self.weights[name + "_layer_norm_bias"], in_float32(1e-5))

    def attention(self, x, bias, name):
        split = lambda kind: self.dense(x, "%s_%s_fc" % (name, kind)).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        query, key, value = split("query"), split("key"), split("value")
        scale = in_float32(1 / math.sqrt(query.shape[-1]))
        weights = torch.softmax(query * scale @ key.transpose(2, 3) + bias, -1)
        return self.dense((weights @ value).transpose(1, 2).flatten(2), name + "_output_fc")

    def layer(self, x, bias, name):
        x = self.norm(x + self.attention(x, bias, name + "_multi_head_att"), name + "_post_att")
        hidden = self.activation(self.dense(x, name + "_ffn_fc_0"))
        return self.norm(x + self.dense(hidden, name + "_ffn_fc_1"), name + "_post_ffn")

    def encode(self, batch):
        x = (functional.embedding(batch["token_ids"], self.weights["word_embedding"]) +
             functional.embedding(batch["position_ids"], self.weights["pos_embedding"]) +
             functional.embedding(batch["sentence_ids"], self.weights["sent_embedding"]))
        x = self.norm(x, "pre_encoder")
        bias = (batch["input_mask"] - 1)[:, None, None, :] * MASKED_SCORE
        for i in range(self.layers):
            x = self.layer(x, bias, "encoder_layer_%d" % i)
        return x

    def losses(self, batch):
        """(loss of masked words, loss of the sentence task)."""
        encoded = self.encode(batch)
        chosen = encoded.flatten(0, 1)[batch["masked_positions"].flatten()]
        hidden = self.norm(self.activation(self.dense(chosen, "mask_lm_trans_fc")), "mask_lm_trans")
        scores = hidden @ self.weights["word_embedding"].T + self.weights["mask_lm_out_fc.b_0"]
        each = functional.cross_entropy(scores, batch["masked_labels"].flatten(), reduction="none")
        weights = batch["masked_weights"].flatten()
        masked = (each * weights).sum() / weights.sum().clamp(min=LEAST_WEIGHT)
        pooled = torch.tanh(self.dense(encoded[:, 0], "pooled_fc"))
        sentence = functional.cross_entropy(self.dense(pooled, "next_sent_fc"), batch["sentence_label"].flatten())
        return masked, sentence


def clip(parameters, most):
    """Scales all gradients together, if their norm is larger than `most`."""
    norm = torch.sqrt(sum(p.grad.square().sum() for p in parameters))
    for parameter in parameters:
        parameter.grad *= most / norm.clamp(min=most)


def load_batches(folder, dtype):
    """Each feed of all steps, [steps, ...]."""
    feeds = {name: torch.tensor(array) for name, array in load_arrays(os.path.join(folder, "batches.npz")).items()}
    return {name: feed.to(dtype) if feed.is_floating_point() else feed for name, feed in feeds.items()}


def train(description, feeds, initial):
    """(series of losses by name, final parameters)."""
    weights = {name: torch.tensor(array).requires_grad_() for name, array in initial.items()}
    twin = Twin(description["config"], weights)
    optimizer = torch.optim.Adam(weights.values(), lr=in_float32(description["learning_rate"]),
                                 betas=(in_float32(0.9), in_float32(0.999)), eps=in_float32(1e-8))
    series = {"loss": [], "masked_loss": []}
    for step in range(len(feeds["token_ids"])):
        masked, sentence = twin.losses({name: feed[step] for name, feed in feeds.items()})
        loss = masked + sentence
        optimizer.zero_grad()
        loss.backward()
        clip(weights.values(), description["clip_norm"])
        optimizer.step()
        series["loss"].append(loss.item())
        series["masked_loss"].append(masked.item())
    return series, {name: tensor.detach().numpy() for name, tensor in weights.items()}


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
