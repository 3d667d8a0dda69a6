#!/usr/bin/env python3
"""Runs a PyTorch model's weights in Skiff's ERNIE, and compares the scores.

usage: ernie_from_torch.py BAZEL_BIN

The network here is made of PyTorch's own modules, with random weights. They are saved by safetensors' own library,
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

LENGTH, MASKED, SEQUENCES = 64, 12, 6
CLASSES = 2
# In the order of the model's outputs.
OUTPUTS = ["save_infer_model/scale_0", "save_infer_model/scale_1"]


class Ernie(nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden = config["hidden_size"]
        self.words = nn.Embedding(config["vocab_size"], hidden)
        self.positions = nn.Embedding(config["max_position_embeddings"], hidden)
        self.sentences = nn.Embedding(config["type_vocab_size"], hidden)
        self.norm = nn.LayerNorm(hidden)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(hidden, config["num_attention_heads"], config["intermediate_size"],
                                       activation=config["hidden_act"], batch_first=True)
            for _ in range(config["num_hidden_layers"]))
        self.transform = nn.Linear(hidden, hidden)
        self.activation = getattr(nn.functional, config["hidden_act"])
        self.transform_norm = nn.LayerNorm(hidden)
        self.word_bias = nn.Parameter(torch.zeros(config["vocab_size"]))
        self.pooler = nn.Linear(hidden, hidden)
        self.next_sentence = nn.Linear(hidden, CLASSES)

    def forward(self, feeds):
        x = self.norm(self.words(feeds["token_ids"]) + self.positions(feeds["position_ids"]) +
                      self.sentences(feeds["sentence_ids"]))
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=feeds["input_mask"] == 0)
        chosen = x.flatten(0, 1)[feeds["masked_positions"].flatten()]
        words = self.transform_norm(self.activation(self.transform(chosen))) @ self.words.weight.T + self.word_bias
        return words, self.next_sentence(torch.tanh(self.pooler(x[:, 0])))


def dense(weight, bias, name):
    """A Linear's parameters as Skiff has them: it multiplies x by the matrix, not by its transpose."""
    return {name + ".w_0": weight.T, name + ".b_0": bias}


def norm(module, name):
    return {name + "_layer_norm_scale": module.weight, name + "_layer_norm_bias": module.bias}


def linear(module, name):
    return dense(module.weight, module.bias, name)


def layer_parameters(layer, name):
    attention = layer.self_attn
    parameters = linear(attention.out_proj, name + "_multi_head_att_output_fc")
    # PyTorch has the three matrices below each other.
    for kind, weight, bias in zip(("query", "key", "value"), attention.in_proj_weight.chunk(3),
                                  attention.in_proj_bias.chunk(3)):
        parameters |= dense(weight, bias, "%s_multi_head_att_%s_fc" % (name, kind))
    return (parameters | linear(layer.linear1, name + "_ffn_fc_0") | linear(layer.linear2, name + "_ffn_fc_1") |
            norm(layer.norm1, name + "_post_att") | norm(layer.norm2, name + "_post_ffn"))


def skiff_parameters(model):
    """The model's parameters by the names of Skiff's."""
    parameters = {"word_embedding": model.words.weight, "pos_embedding": model.positions.weight,
                  "sent_embedding": model.sentences.weight, "mask_lm_out_fc.b_0": model.word_bias}
    parameters |= norm(model.norm, "pre_encoder") | norm(model.transform_norm, "mask_lm_trans")
    for name, module in (("mask_lm_trans_fc", model.transform), ("pooled_fc", model.pooler),
                         ("next_sent_fc", model.next_sentence)):
        parameters |= linear(module, name)
    for i, layer in enumerate(model.layers):
        parameters |= layer_parameters(layer, "encoder_layer_%d" % i)
    return {name: tensor.detach().contiguous() for name, tensor in parameters.items()}


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
    save_file(skiff_parameters(model), weights, metadata={"format": "pt"})
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
