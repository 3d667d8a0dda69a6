#!/usr/bin/env python3
"""Times training steps of one recurrent layer beside the same layer of PyTorch, in turn.

    bazel build --config=opt //tools/model_bench
    tools/model_bench/recurrent_in_torch.py bazel-bin/tools/model_bench/model_bench --threads=2

Needs PyTorch. The models are lstm_512, gru_512, padded_lstm_512 and padded_gru_512 of model_bench; PyTorch's is nn.LSTM
or nn.GRU on packed sequences of the same lengths. A step is the forward pass, the mean of all states, the backward
pass and an update by momentum with L2 decay. The memory is the peak above what the process holds before it makes the
model. Each side runs in a process of its own.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "benchmark"))
import torch_side

WIDTH = 512
# As in recurrent_workload.cc.
LENGTHS = [6, 7, 7, 8, 8, 9, 9, 9, 10, 10, 10, 10, 11, 11, 11, 12, 12, 12, 13, 13, 13, 14, 14, 14, 15, 15, 16, 17, 18, 19,
           20, 24]
MODELS = ["lstm_512", "gru_512", "padded_lstm_512", "padded_gru_512"]


def torch_layer(torch, cell, batch_size):
    """Returns the layer and its input."""
    lengths = [LENGTHS[i % len(LENGTHS)] for i in range(batch_size)]
    layer = (torch.nn.LSTM if cell == "lstm" else torch.nn.GRU)(WIDTH, WIDTH)
    rows = [torch.rand(length, WIDTH) * 2 - 1 for length in lengths]
    return layer, torch.nn.utils.rnn.pack_sequence(rows, enforce_sorted=False)


def torch_step(torch, cell, batch_size):
    """Returns a function that runs a training step."""
    layer, packed = torch_layer(torch, cell, batch_size)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)

    def step():
        optimizer.zero_grad(set_to_none=False)
        layer(packed)[0].data.mean().backward()
        optimizer.step()

    return step


def time_torch(model, batch_size, threads, steps):
    """Prints {"step_ms", "model_rss_mb"}."""
    import torch  # after the number of threads is set

    torch.set_num_threads(threads)
    torch.mm(torch.rand(512, 512), torch.rand(512, 512))  # what the first product makes, any model has
    before = torch_side.resident_megabytes()
    step = torch_step(torch, model.split("_")[-2], batch_size)
    for _ in range(3):
        step()
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    print(json.dumps({"step_ms": 1e3 * statistics.median(times), "model_rss_mb": torch_side.peak_megabytes() - before}))


def run_torch(model, options):
    command = [sys.executable, __file__, options.model_bench, "--torch", "--model=" + model,
               "--batch_size=%d" % options.batch_size, "--threads=%d" % options.threads, "--steps=%d" % options.steps]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True,
                                     env={**os.environ, **torch_side.MALLOC}).stdout)


def run_skiff(model, options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "figures.json")
        command = [options.model_bench, "--model=" + model, "--batch_size=%d" % options.batch_size, "--nosplit",
                   "--threads=%d" % options.threads, "--steps=%d" % options.steps, "--json=" + path]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with open(path, encoding="utf-8") as f:
            return json.load(f)


def compare(model, options):
    """Prints the line of a model."""
    ours = [run_skiff(model, options)]
    theirs = [run_torch(model, options)]
    for _ in range(options.rounds - 1):
        ours.append(run_skiff(model, options))
        theirs.append(run_torch(model, options))
    best = lambda figures, name: min(f[name] for f in figures)
    print("%-16s %9.2f %9.2f %15.2f %9.1f %9.1f" %
          (model, best(ours, "step_ms"), best(theirs, "step_ms"), best(theirs, "step_ms") / best(ours, "step_ms"),
           best(ours, "model_rss_mb"), best(theirs, "model_rss_mb")), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0], allow_abbrev=False)
    parser.add_argument("model_bench", help="the binary")
    parser.add_argument("--model", default="", choices=["", *MODELS], help="default: all")
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--threads", type=int, default=1, help="of both (default 1)")
    parser.add_argument("--steps", type=int, default=30, help="timed ones of a run (default 30)")
    parser.add_argument("--rounds", type=int, default=3, help="in turn, the best of which counts (default 3)")
    parser.add_argument("--torch", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    if options.torch:
        time_torch(options.model, options.batch_size, options.threads, options.steps)
        return
    print("%d threads, %d sequences; milliseconds a step, megabytes above the start" %
          (options.threads, options.batch_size))
    print("%-16s %9s %9s %15s %9s %9s" % ("", "Skiff", "PyTorch", "PyTorch/Skiff", "Skiff MB", "PyTorch MB"))
    for model in MODELS:
        if options.model in ("", model):
            compare(model, options)


if __name__ == "__main__":
    main()
