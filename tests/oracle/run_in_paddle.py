#!/usr/bin/env python3
"""Trains what write_training_programs wrote in PaddlePaddle and compares with Skiff's run.

usage: run_in_paddle.py DIR

DIR is what write_training_programs filled and tools/run_program ran (run.sh does both). For each
program:
  1. PaddlePaddle knows all slots and attributes; the startup program runs, and what it makes has
     the dtypes and shapes of Skiff's initial values (the values are drawn by another generator);
  2. from Skiff's initial values, one step: every variable that an op of the main program writes
     has the dtype and shape that the program says, and the value that Skiff computed, and so have
     parameters, statistics and optimizer states;
  3. from the same start, all steps: the same losses and accuracies, and in the end the same
     parameters, statistics and optimizer states.
Differences are relative: of losses to the loss, of arrays to their largest magnitude. Arrays that
are zero but for rounding (the description lists them) only have to be that small beside the
largest gradient, and states made of them aren't compared.

Each program runs in a child process, which is started anew after a program that PaddlePaddle aborts at.
Exit status: 0, 1 if something differs by more than its bound, 2 without PaddlePaddle.
Needs numpy and paddlepaddle==2.6.2 in the interpreter that runs it.
"""
import json
import os
import sys

IS_CHILD = len(sys.argv) == 3 and sys.argv[2].startswith("--from=")
if not IS_CHILD and len(sys.argv) != 2 or sys.argv[1].startswith("-"):
    print(__doc__)
    sys.exit(0 if sys.argv[1:] == ["--help"] else 2)

from paddle_oracle import (  # isort: skip
    Session, described, dims_admit, load_program, narrow_wide_sums, np, unknown_to_paddle)
import children
from comparison import BOUNDS, compare_arrays, compare_rounding, load_arrays, print_table, series_difference
from update_ops import translate_updates

# A rectified unit whose input is zero apart from rounding may take one branch in one framework and
# the other branch in the other. Two float32 runs diverge from there; how far depends on the program.
# So the final state may differ by more than the bound if rounding alone has that effect within
# PaddlePaddle: by a few times the difference between its run and others that start one unit in the
# last place away.
DISTURBED_RUNS = 3
DISTURBANCE_FACTOR = 4
LARGEST_BOUND = 0.5  # Beyond that a comparison says nothing.
LEARNED = 0.9  # The last loss as a share of the first one, or less: steps that do something.
SHOWN_PROBLEMS = 10  # of a program
SILENCE_SECONDS = 600
NO_CELLS = ["-"] * 6


def disturbed(array, draw):
    """The array with each number moved up or down by one unit in the last place."""
    limits = np.where(draw.randint(0, 2, array.shape), np.inf, -np.inf)
    return np.nextafter(array, limits.astype(array.dtype))


class Check:
    """One program in both frameworks. `problems` describes the differences."""

    def __init__(self, folder, description):
        self.at = lambda name: os.path.join(folder, name)
        self.description = description
        self.bound = BOUNDS[description["dtype"]]
        self.rounding = set(description["rounding"])
        self.problems = []

    def run(self):
        """The cells of the table."""
        self.params = load_arrays(self.at("params.npz"))
        self.feed = load_arrays(self.at("feed.npz"))
        self.main = load_program(self.at("main.pb"))
        translate_updates(self.main, self.params)
        self.check_startup()
        step = self.compare_step()
        losses, *final = self.compare_training()
        return ["%.1e" % x for x in (losses, *step, *final)]

    def expect(self, condition, problem):
        if not condition:
            self.problems.append(problem)

    def compare(self, what, found, expected, bound):
        """The largest difference of arrays by name."""
        worst, problems = compare_arrays(what, found, expected, bound)
        self.problems += problems
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

    def started(self, params=None):
        session = Session()
        session.set(params or self.params)
        return session

    def state_of(self, session):
        return {name: session.get(name) for name in self.params if name not in self.rounding}

    def load_state(self, path):
        return {name: value for name, value in load_arrays(self.at(path)).items() if name not in self.rounding}

    def compare_step(self):
        """The largest differences of gradients, of other variables, and of the state after one step."""
        names = self.description["variables"]
        gradients = set(self.description["gradients"].values())
        ours = {n: v for n, v in load_arrays(self.at("skiff_step.npz")).items() if not n.endswith(".steps")}
        for name in narrow_wide_sums(self.main) & set(ours):
            ours[name] = ours[name].astype(np.float32)
        session = self.started()
        theirs = session.run(self.main, self.feed, names)
        block = self.main.global_block()
        for name, value in sorted((n, v) for n, v in theirs.items() if n in names):
            dims, dtype = described(block.var(name))
            self.expect(dims_admit(dims, value.shape) and dtype == value.dtype,
                        "%s is %s %s, but the program says %s %s" % (name, value.dtype, list(value.shape), dtype,
                                                                    list(dims)))
        self.expect(gradients <= set(names), "gradients that were not compared: %s" % sorted(gradients - set(names)))
        for arrays in (ours, theirs):
            self.problems += compare_rounding(arrays, self.rounding & set(names), gradients, self.bound)
        part = lambda arrays, inside: {n: v for n, v in arrays.items()
                                       if (n in gradients) == inside and n not in self.rounding}
        return (self.compare("gradient", part(theirs, True), part(ours, True), self.bound),
                self.compare("variable", part(theirs, False), part(ours, False), self.bound),
                self.compare("after one step", self.state_of(session), self.load_state("skiff_step_params.npz"),
                             self.bound))

    def train(self, params=None):
        """({loss and metrics: series}, final state)."""
        watched = [self.description["loss"], *self.description["metrics"]]
        session = self.started(params)
        steps = [session.run(self.main, self.feed, watched) for _ in range(self.description["steps"])]
        return {name: [float(values[name]) for values in steps] for name in watched}, self.state_of(session)

    def compare_final_state(self, state):
        """(largest difference, bound)."""
        expected = self.load_state("skiff_params.npz")
        bound = self.bound
        if self.description["dtype"] == "float32" and compare_arrays("", state, expected, bound)[1]:
            bound = max(bound, DISTURBANCE_FACTOR * self.spread_of_rounding(state))
            self.expect(bound <= LARGEST_BOUND, "after all steps: rounding alone asks for a bound of %.1e" % bound)
        return self.compare("after all steps", state, expected, bound), bound

    def spread_of_rounding(self, state):
        """Returns how far from `state` PaddlePaddle ends if it starts from slightly different parameters."""
        spread = 0.0
        for seed in range(DISTURBED_RUNS):
            draw = np.random.RandomState(seed)
            moved = {name: disturbed(self.params[name], draw) for name in sorted(self.description["gradients"])}
            other = self.train({**self.params, **moved})[1]
            spread = max(spread, compare_arrays("disturbed", other, state, LARGEST_BOUND)[0])
        return spread

    def compare_training(self):
        """The largest differences of the losses and of the final state, and the bound of the latter."""
        series, state = self.train()
        ours = load_arrays(self.at("skiff_training.npz"))
        differences = {}
        for name, theirs in series.items():
            mine = ours.get(name + ".steps")
            differences[name] = series_difference(theirs, mine)
            self.expect(differences[name] <= self.bound, "%s differs by %.1e: %s, in Skiff %s" % (
                name, differences[name], theirs, mine))
        losses = series[self.description["loss"]]
        self.expect(losses[-1] <= LEARNED * losses[0],
                    "learns nothing: the loss goes from %g to %g" % (losses[0], losses[-1]))
        return differences[self.description["loss"]], *self.compare_final_state(state)


def load_descriptions(root):
    with open(os.path.join(root, "programs.json"), encoding="utf-8") as f:
        return json.load(f)


def check(root, description):
    """{"cells": of the table, "problems": in words}."""
    made = Check(os.path.join(root, description["name"]), description)
    cells = NO_CELLS
    try:
        cells = made.run()
    except Exception as error:  # Whatever PaddlePaddle throws, or a file that isn't there: the next may run.
        made.problems.append(" ".join((str(error).strip() or repr(error)).splitlines()[-3:]))
    return {"cells": cells, "problems": made.problems}


def work(root, first):
    """The child: a result for each program from `first` on."""
    children.report(check(root, description) for description in load_descriptions(root)[first:])


def main(root):
    descriptions = load_descriptions(root)
    rows, failures = [], []
    for description, result in zip(descriptions, children.run_all(__file__, root, len(descriptions), SILENCE_SECONDS)):
        name = description["name"]
        problems = [result["refused"]] if "refused" in result else result["problems"]
        failures += ["%s: %s" % (name, problem) for problem in problems[:SHOWN_PROBLEMS]]
        if len(problems) > SHOWN_PROBLEMS:
            failures.append("%s: … and %d more" % (name, len(problems) - SHOWN_PROBLEMS))
        rows.append([name, description["steps"], "%.0e" % BOUNDS[description["dtype"]],
                     *result.get("cells", NO_CELLS), "WRONG" if problems else "ok"])
    print("largest relative differences between PaddlePaddle and Skiff")
    print_table(["program", "steps", "bound", "losses", "gradients", "other values", "state after 1", "state after all",
                 "bound of that", ""], rows)
    for failure in failures:
        print(failure)
    wrong = sum(row[-1] == "WRONG" for row in rows)
    print("%d programs: %d agree, %d wrong" % (len(rows), len(rows) - wrong, wrong))
    return 1 if failures or not rows else 0


if __name__ == "__main__":
    if IS_CHILD:
        work(sys.argv[1], int(sys.argv[2].partition("=")[2]))
    else:
        sys.exit(main(sys.argv[1]))
