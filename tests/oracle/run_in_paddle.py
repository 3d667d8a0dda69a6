#!/usr/bin/env python3
"""Trains what write_training_programs wrote in PaddlePaddle and compares with Skiff's run.

usage: run_in_paddle.py DIR

DIR is what write_training_programs filled and tools/run_program ran (run.sh does both). For each
program:
  1. PaddlePaddle knows all slots and attributes; the startup program runs, and what it makes has
     the dtypes and shapes of Skiff's initial values (the values are drawn by another generator);
  2. from Skiff's initial values, one step: every variable that an op of the main program writes
     has the dtype and shape that the program says, and the value that Skiff computed;
  3. from the same start, all steps: the same losses, and in float64 the same parameters and
     optimizer states in the end.
Differences are relative: of losses to the loss, of arrays to their largest magnitude.

Exit status: 0, 1 if something differs by more than the bound of its dtype, 2 without PaddlePaddle.
Needs numpy and paddlepaddle==2.6.2 in the interpreter that runs it.
"""
import json
import os
import sys

if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
    print(__doc__)
    sys.exit(0 if sys.argv[1:] == ["--help"] else 2)

import numpy as np

from paddle_oracle import (BOUNDS, Session, described, dims_admit, largest_difference, load_arrays, load_program, print_table,
                           unknown_to_paddle)

# A rectified unit whose input is zero but for rounding takes one branch in one framework and the
# other in the other, and from there on two float32 runs go their own ways.
FINAL_STATE_BOUNDS = {"float64": 1e-9, "float32": float("inf")}
SHOWN_PROBLEMS = 10  # of a program


class Check:
    """One program in both frameworks. `problems` tells in words what differs."""

    def __init__(self, folder, description):
        self.at = lambda name: os.path.join(folder, name)
        self.description = description
        self.bound = BOUNDS[description["dtype"]]
        self.problems = []

    def run(self):
        """The cells of the table."""
        self.main = load_program(self.at("main.pb"))
        self.params = load_arrays(self.at("params.npz"))
        self.feed = load_arrays(self.at("feed.npz"))
        self.check_startup()
        gradients, others = self.compare_step()
        losses, persistables = self.compare_training()
        return ["%.1e" % x for x in (losses, gradients, others, persistables)]

    def expect(self, condition, problem):
        if not condition:
            self.problems.append(problem)

    def largest(self, what, found, expected, bound):
        """The largest difference of arrays by name."""
        worst = 0.0
        for name in sorted(expected):
            difference = largest_difference(found[name], expected[name])
            self.expect(difference <= bound, "%s %s: differs by %.1e (%s %s here, %s %s in Skiff)" % (
                what, name, difference, found[name].dtype, list(found[name].shape), expected[name].dtype,
                list(expected[name].shape)))
            worst = max(worst, difference)
        return worst

    def check_startup(self):
        session = Session()
        startup = load_program(self.at("startup.pb"))
        self.problems += unknown_to_paddle(startup) + unknown_to_paddle(self.main)
        session.run(startup)
        for name, ours in sorted(self.params.items()):
            theirs = session.get(name)
            if theirs is None:
                self.problems.append("startup: does not set %s" % name)
                continue
            self.expect(theirs.dtype == ours.dtype and theirs.shape == ours.shape,
                        "startup: %s is %s %s, in Skiff %s %s" % (name, theirs.dtype, list(theirs.shape), ours.dtype,
                                                                  list(ours.shape)))
            self.expect(np.isfinite(theirs).all(), "startup: %s is not finite" % name)

    def started(self):
        session = Session()
        session.set(self.params)
        return session

    def compare_step(self):
        ours = load_arrays(self.at("skiff_step.npz"))
        ours = {name: value for name, value in ours.items() if not name.endswith(".steps")}
        self.expect(set(ours) == set(self.description["variables"]), "Skiff fetched other variables")
        theirs = self.started().run(self.main, self.feed, sorted(ours))
        block = self.main.global_block()
        for name, value in sorted(theirs.items()):
            dims, dtype = described(block.var(name))
            self.expect(dims_admit(dims, value.shape) and dtype == value.dtype,
                        "%s is %s %s, but the program says %s %s" % (name, value.dtype, list(value.shape), dtype,
                                                                    list(dims)))
        gradients = set(self.description["gradients"].values())
        return (self.largest("gradient", theirs, {n: v for n, v in ours.items() if n in gradients}, self.bound),
                self.largest("variable", theirs, {n: v for n, v in ours.items() if n not in gradients}, self.bound))

    def compare_training(self):
        watched = [self.description["loss"], self.description["accuracy"]]
        session = self.started()
        series = [session.run(self.main, self.feed, watched) for _ in range(self.description["steps"])]
        ours = load_arrays(self.at("skiff_training.npz"))
        worst = 0.0
        for step, values in enumerate(series):
            for name in watched:
                found, expected = float(values[name]), float(ours[name + ".steps"][step])
                difference = abs(found - expected) / abs(expected) if found != expected else 0.0
                self.expect(difference <= self.bound, "step %d: %s = %.17g, in Skiff %.17g" % (step + 1, name, found,
                                                                                            expected))
                if name == self.description["loss"]:
                    worst = max(worst, difference)
        expected = load_arrays(self.at("skiff_params.npz"))
        self.expect(set(expected) == set(self.params), "Skiff kept other persistable variables")
        state = {name: session.get(name) for name in expected}
        return worst, self.largest("after all steps", state, expected, FINAL_STATE_BOUNDS[self.description["dtype"]])


def main():
    root = sys.argv[1]
    with open(os.path.join(root, "programs.json"), encoding="utf-8") as f:
        descriptions = json.load(f)
    rows, failures = [], []
    for description in descriptions:
        name = description["name"]
        check = Check(os.path.join(root, name), description)
        try:
            cells = check.run()
        except Exception as error:  # Whatever PaddlePaddle throws: the next program may run.
            cells = ["-"] * 4
            check.problems.append(str(error).strip().splitlines()[-1])
        failures += ["%s: %s" % (name, problem) for problem in check.problems[:SHOWN_PROBLEMS]]
        if len(check.problems) > SHOWN_PROBLEMS:
            failures.append("%s: … and %d more" % (name, len(check.problems) - SHOWN_PROBLEMS))
        rows.append([name, description["steps"], *cells, "%.0e" % check.bound, "WRONG" if check.problems else "ok"])
    print("largest relative differences between PaddlePaddle and Skiff")
    print_table(["program", "steps", "losses", "gradients", "other values", "final state", "bound", ""], rows)
    for failure in failures:
        print(failure)
    return 1 if failures or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
