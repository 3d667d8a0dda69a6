#!/usr/bin/env python3
"""Times optimizer_bench beside the optimizers of PyTorch on the same tensors, in turn.

    bazel build --config=opt //tools/optimizer_bench
    tools/optimizer_bench/compare_with_torch.py bazel-bin/tools/optimizer_bench/optimizer_bench --threads=2

Needs PyTorch. Columns are milliseconds per step, the median of the rounds; "-" if PyTorch has no such form. The last
two columns are medians of ratios within a round: PyTorch's fastest form over Skiff's flat one, and Skiff's share of
its own stream.
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

SKIFF_FORMS = ("loop", "merged", "flat")
TORCH_FORMS = {"for-loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}
POINTS = "1x10000000,10x1000000,100x100000,400x1000,400x10000,1000x1000,4000x100,4000x10000"


def optimizers(torch):
    """Returns {name in optimizer_bench: (class, options)}, with the options that give PyTorch the same work."""
    optim = torch.optim
    return {
        "sgd": (optim.SGD, {}),
        "momentum": (optim.SGD, {"momentum": 0.9}),
        "adam": (optim.Adam, {}),
        "adamw": (optim.AdamW, {}),
        "adamax": (optim.Adamax, {}),
        "adagrad": (optim.Adagrad, {}),
        "adadelta": (optim.Adadelta, {}),
        # Fluid's op always has the state of a momentum.
        "rmsprop": (optim.RMSprop, {"momentum": 0.9}),
    }


def torch_step(torch, options, tensors, elements, form):
    """Returns a function that does one step on tensors of its own; None if PyTorch has no such form."""
    make, settings = optimizers(torch)[options.optimizer]
    settings = dict(settings)
    if options.decay == "l2":
        if options.optimizer == "adamw":
            return None  # PyTorch's AdamW has only its own decay, not L2 regularization
        settings["weight_decay"] = 0.01
    parameters = [torch.ones(elements) for _ in range(tensors)]
    for parameter in parameters:
        parameter.grad = torch.full((elements,), 1 / 128)
    try:
        optimizer = make(parameters, lr=1e-3, **settings, **TORCH_FORMS[form])
        optimizer.step()
    except (RuntimeError, TypeError):  # no fused form
        return None
    if options.clip == "none":
        return optimizer.step
    has_foreach = form != "for-loop"

    def clip_and_step():
        torch.nn.utils.clip_grad_norm_(parameters, 1 / 1024, foreach=has_foreach)
        optimizer.step()

    return clip_and_step


def milliseconds(run, seconds):
    """Returns the median time of at least three runs that take at least `seconds` together."""
    run()
    times = []
    while sum(times) < seconds or len(times) < 3:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def skiff_forms(options, tensors, elements):
    """Runs optimizer_bench once and returns {form: figures}."""
    with tempfile.TemporaryDirectory() as folder:
        figures = os.path.join(folder, "figures.json")
        subprocess.run(
            [options.optimizer_bench, "--optimizer=" + options.optimizer, "--tensors=%d" % tensors,
             "--elements=%d" % elements, "--most_elements=%d" % (tensors * elements), "--clip=" + options.clip,
             "--decay=" + options.decay, "--threads=%d" % options.threads, "--seconds=%g" % options.seconds,
             "--json=" + figures], check=True, stdout=subprocess.DEVNULL)
        with open(figures, encoding="utf-8") as stream:
            point = json.load(stream)["points"][0]
    if "skipped" in point:
        sys.exit("%d x %d %s" % (tensors, elements, point["skipped"]))
    return point["forms"]


def compare(torch, options, tensors, elements):
    """Returns the row of one point. Both sides take turns, so that noise of the machine affects both."""
    steps = {form: torch_step(torch, options, tensors, elements, form) for form in TORCH_FORMS}
    times = {form: [] for form in (*SKIFF_FORMS, *TORCH_FORMS)}
    ratios, shares = [], []
    for _ in range(options.rounds):
        ours = skiff_forms(options, tensors, elements)
        for form in SKIFF_FORMS:
            times[form].append(ours[form]["step_microseconds"] / 1e3)
        theirs = {form: milliseconds(step, options.seconds) for form, step in steps.items() if step is not None}
        for form, value in theirs.items():
            times[form].append(value)
        if theirs:
            ratios.append(min(theirs.values()) / times["flat"][-1])
        shares.append(ours["flat"]["stream_share"])
    cells = ["%10.3f" % statistics.median(values) if values else "%10s" % "-" for values in times.values()]
    ratio = "%10.2f" % statistics.median(ratios) if ratios else "%10s" % "-"
    return "%7d %9d %s %s %8.0f%%" % (tensors, elements, " ".join(cells), ratio, 100 * statistics.median(shares))


def points(text):
    """Parses "400x1000,1x100" to [(tensors, elements)]."""
    return [tuple(int(number) for number in point.split("x")) for point in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0], allow_abbrev=False)
    parser.add_argument("optimizer_bench", help="the binary")
    parser.add_argument("--optimizer", default="adam", help="of optimizer_bench (default adam)")
    parser.add_argument("--points", type=points, default=POINTS,
                        help="tensors x elements of each, with commas between them (default %s)" % POINTS)
    parser.add_argument("--clip", choices=("none", "global_norm"), default="none", help="as of optimizer_bench")
    parser.add_argument("--decay", choices=("none", "l2"), default="none", help="as of optimizer_bench")
    parser.add_argument("--threads", type=int, default=1, help="of both (default 1)")
    parser.add_argument("--seconds", type=float, default=0.3, help="least measured time of a form (default 0.3)")
    parser.add_argument("--rounds", type=int, default=3, help="of both sides, in turn (default 3)")
    options = parser.parse_args()
    torch = torch_side.torch_without_gradients(options.threads)
    if options.optimizer not in optimizers(torch):
        parser.error("PyTorch has no optimizer %s; expected one of %s" %
                     (options.optimizer, ", ".join(sorted(optimizers(torch)))))
    print("%s, clip %s, decay %s; PyTorch %s, %d threads; milliseconds, medians of %d rounds" %
          (options.optimizer, options.clip, options.decay, torch.__version__, options.threads, options.rounds))
    print("%7s %9s %s %10s %9s" % ("tensors", "elements", " ".join("%10s" % form for form in
                                                                  (*SKIFF_FORMS, *TORCH_FORMS)),
                                   "best/flat", "of stream"))
    for tensors, elements in options.points:
        print(compare(torch, options, tensors, elements), flush=True)


if __name__ == "__main__":
    main()
