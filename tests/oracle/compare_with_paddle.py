#!/usr/bin/env python3
"""Compares how Skiff trained PaddlePaddle's programs with how PaddlePaddle did.

usage: compare_with_paddle.py DIR

DIR is what write_in_paddle.py filled and tools/run_program ran (run.sh does both).
Exit status: 0, 1 if something differs by more than the bound of its dtype. Needs numpy.
"""
import json
import os
import sys

if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
    print(__doc__)
    sys.exit(0 if sys.argv[1:] == ["--help"] else 2)

import numpy as np

from paddle_oracle import BOUNDS, largest_difference, load_arrays, print_table


def compare(folder, description):
    """(largest difference of the losses, of the final state, problems)."""
    at = lambda name: os.path.join(folder, name)
    if not os.path.exists(at("skiff.npz")):
        return float("inf"), float("inf"), ["Skiff did not run it, see what tools/run_program printed"]
    bound = BOUNDS[description["dtype"]]
    ours, theirs = load_arrays(at("skiff.npz")), load_arrays(at("paddle.npz"))
    problems = []
    losses = 0.0
    for name in description["watched"]:
        found, expected = ours[name + ".steps"], theirs[name]
        difference = np.abs(found - expected) / np.maximum(np.abs(expected), 1e-300)
        if found.shape != expected.shape or not (difference <= bound).all():
            problems.append("%s: %s in PaddlePaddle, %s in Skiff" % (name, expected, found))
        losses = max(losses, float(difference.max()))
    found, expected = load_arrays(at("skiff_params.npz")), load_arrays(at("paddle_params.npz"))
    state = 0.0
    for name, array in sorted(expected.items()):
        difference = largest_difference(found[name], array) if name in found else float("inf")
        if difference > bound:
            problems.append("%s differs by %.1e in the end" % (name, difference))
        state = max(state, difference)
    return losses, state, problems


def main(root):
    with open(os.path.join(root, "programs.json"), encoding="utf-8") as f:
        descriptions = json.load(f)
    rows, failures = [], []
    for description in descriptions:
        losses, state, problems = compare(os.path.join(root, description["name"]), description)
        failures += ["%s: %s" % (description["name"], problem) for problem in problems]
        rows.append([description["name"], description["steps"], "%.1e" % losses, "%.1e" % state,
                     "%.0e" % BOUNDS[description["dtype"]], "WRONG" if problems else "ok"])
    print("largest relative differences between Skiff and PaddlePaddle, which wrote the programs")
    print_table(["program", "steps", "losses", "final state", "bound", ""], rows)
    for failure in failures:
        print(failure)
    return 1 if failures or not rows else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
