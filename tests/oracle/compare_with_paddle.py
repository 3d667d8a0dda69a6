#!/usr/bin/env python3
"""Compares how Skiff trained PaddlePaddle's programs with how PaddlePaddle did.

usage: compare_with_paddle.py DIR

DIR is what write_in_paddle.py filled and tools/run_program ran (run.sh does both).
Exit status: 0, 1 if losses or the final state differ by more than the bounds of their dtype. Needs numpy.
"""
import json
import os
import sys

from comparison import BOUNDS, INFINITE, compare_arrays, load_arrays, print_table, series_difference


# Relative to the loss (or accuracy) of the step.
LOSS_BOUNDS = {"float64": 1e-9, "float32": 1e-4}


def compare(folder, description):
    """(largest difference of the losses, of the final state, problems)."""
    at = lambda name: os.path.join(folder, name)
    if not (os.path.exists(at("skiff.npz")) and os.path.exists(at("skiff_params.npz"))):
        return INFINITE, INFINITE, ["Skiff did not run it, see what tools/run_program printed"]
    bound, loss_bound = BOUNDS[description["dtype"]], LOSS_BOUNDS[description["dtype"]]
    ours, theirs = load_arrays(at("skiff.npz")), load_arrays(at("paddle.npz"))
    losses, problems = 0.0, []
    for name in description["watched"]:
        found, expected = ours.get(name + ".steps"), theirs.get(name)
        difference = series_difference(found, expected)
        if not difference <= loss_bound:
            problems.append("%s differs by %.1e: %s, in PaddlePaddle %s" % (name, difference, found, expected))
        losses = max(losses, difference)
    if not description["watched"]:
        problems.append("no series is watched")
    # What coalesce_tensor makes shares its memory with the parameters in PaddlePaddle alone.
    state_in = lambda name: {n: v for n, v in load_arrays(at(name)).items() if n not in description["fused"]}
    state, state_problems = compare_arrays("after all steps", state_in("skiff_params.npz"),
                                           state_in("paddle_params.npz"), bound)
    return losses, state, problems + state_problems


def main(root):
    with open(os.path.join(root, "programs.json"), encoding="utf-8") as f:
        descriptions = json.load(f)
    rows, failures = [], []
    for description in descriptions:
        losses, state, problems = compare(os.path.join(root, description["name"]), description)
        failures += ["%s: %s" % (description["name"], problem) for problem in problems]
        dtype = description["dtype"]
        rows.append([description["name"], description["steps"], "%.1e (%.0e)" % (losses, LOSS_BOUNDS[dtype]),
                     "%.1e (%.0e)" % (state, BOUNDS[dtype]), "WRONG" if problems else "ok"])
    print("largest relative differences (and their bounds) between Skiff and PaddlePaddle, which wrote the programs")
    print_table(["program", "steps", "losses", "state after all", ""], rows)
    for failure in failures:
        print(failure)
    if not rows:
        print("no programs")
    return 1 if failures or not rows else 0


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        sys.exit(0 if sys.argv[1:] == ["--help"] else 2)
    sys.exit(main(sys.argv[1]))
