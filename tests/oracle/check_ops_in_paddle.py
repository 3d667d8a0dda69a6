#!/usr/bin/env python3
"""Runs what write_op_programs wrote in PaddlePaddle and compares outputs and gradients with Skiff's.

usage: check_ops_in_paddle.py DIR

write_op_programs writes to DIR, and tools/run_program runs the programs there (run.sh does both).
Prints a line per operator, and the differences. known_differences.txt lists the known differences
with their reasons; an entry for a difference that no longer exists is an error.

Exit status: 0, 1 if something else differs, 2 without PaddlePaddle. Where PaddlePaddle refuses a
program with gradients, it is run without them. A case that makes PaddlePaddle abort counts as
refused: each runs in a child process, which is started anew after that.
Needs numpy and paddlepaddle==2.6.2 in the interpreter that runs it.
"""
import collections
import fnmatch
import json
import os
import sys

import children

BOUNDS = {"float64": 1e-10, "float32": 1e-4}
EMPTY = "@EMPTY@"
SILENCE_SECONDS = 30


def gradient_ops(program):
    """What follows the loss and what only serves it, as (type, inputs, outputs) by slot."""
    ops = [op.desc for op in program.global_block().ops]
    return [shape_of(op) for op in ops if op.has_attr("op_role") and op.attr("op_role") == 1]


def shape_of(op):
    """(type, inputs, outputs) of an op's description; slots without variables are left out."""
    slots = lambda names, of: {name: list(of(name)) for name in names if of(name)}
    return op.type(), slots(op.input_names(), op.input), slots(op.output_names(), op.output)


def same_shape(ours, theirs):
    """Returns whether two gradient ops are the same; unneeded gradients may be @EMPTY@ or absent."""
    if ours[0] != theirs[0] or ours[1] != theirs[1]:
        return False
    wanted = {slot: names for slot, names in ours[2].items() if set(names) != {EMPTY}}
    return all(slot in theirs[2] and len(names) == len(theirs[2][slot]) and
               all(a in (b, EMPTY) for a, b in zip(names, theirs[2][slot])) for slot, names in wanted.items())


def gradient_problems(program):
    """Returns descriptions of the first op's gradient ops that PaddlePaddle would write differently."""
    from paddle_oracle import core, input_slots
    forward = program.global_block().ops[0].desc
    for slot in input_slots(forward.type()):  # PaddlePaddle's own Python names those without variables, too.
        if slot not in forward.input_names():
            forward.set_input(slot, [])
    forward.check_attrs()
    theirs = [shape_of(op) for op in core.get_grad_op_desc(forward, set(), [])[0]]
    ours = gradient_ops(program)[-len(theirs):]
    return ["gradient op %s, PaddlePaddle writes %s" % (op, theirs) for op in ours
            if not any(same_shape(op, other) for other in theirs)]


def try_run(program, at, names, result):
    """(fetched arrays by name, None), or (None, why PaddlePaddle refuses)."""
    from comparison import load_arrays
    from paddle_oracle import Session
    from update_ops import translate_updates
    session = Session()
    params, feeds = load_arrays(at("params.npz")), load_arrays(at("feed.npz"))
    session.set(params)
    try:
        result["spelled_out"] = translate_updates(program, {**params, **feeds})
        return session.run(program, feeds, names), None
    except Exception as error:  # Whatever PaddlePaddle throws.
        lines = [line for line in str(error).strip().splitlines() if line.strip()]
        return None, " ".join(lines[-3:])[-300:] if lines else repr(error)


def without_gradients(program):
    """Returns a program with nothing but the first op."""
    block = program.global_block()
    while len(block.ops) > 1:
        block._remove_op(len(block.ops) - 1)
    return program


def run_case(root, description):
    """Returns the result of a case, as a dict with some of these:

    skiff_refused: True;
    refused, gradient_refused: why PaddlePaddle refuses the whole, or only with gradients;
    spelled_out: whether PaddlePaddle needs more ops for it (update_ops.py);
    differences: {variable: largest difference};
    problems: what is wrong with the program, in words;
    gradient_ops: gradient ops that PaddlePaddle would write differently, in words.
    """
    from comparison import are_alike, largest_difference, load_arrays
    from paddle_oracle import load_program, unknown_to_paddle
    at = lambda name: os.path.join(root, description["name"], name)
    if not os.path.exists(at("skiff.npz")):
        return {"skiff_refused": True}
    ours = load_arrays(at("skiff.npz"))
    program = load_program(at("main.pb"))
    names = description["outputs"] + description["gradients"]
    result = {}
    theirs, refused = try_run(program, at, names, result)
    if refused and description["gradients"]:
        names, result["gradient_refused"] = description["outputs"], refused
        theirs, refused = try_run(without_gradients(load_program(at("main.pb"))), at, names, result)
    if refused:
        return {"refused": refused}
    result["problems"] = unknown_to_paddle(program)
    if description["gradients"] and "gradient_refused" not in result:
        result["gradient_ops"] = gradient_problems(program)
    result["differences"] = {}
    for name in names:
        found, expected = theirs.get(name), ours.get(name)
        random = description["random"] and are_alike(found, expected)
        result["differences"][name] = 0.0 if random else largest_difference(found, expected)
    # Whether a gradient, or what only gradient ops read, is ragged is left to each framework.
    for key in sorted({*ours, *theirs}):
        if key.rpartition(".lod")[0] in description["results"]:
            result["differences"][key] = largest_difference(theirs.get(key), ours.get(key))
    return result


def work(root, first):
    """The child: a result for each case from `first` on."""
    children.report(run_case(root, description) for description in load_descriptions(root)[first:])


def load_descriptions(root):
    with open(os.path.join(root, "cases.json"), encoding="utf-8") as f:
        return json.load(f)


class KnownDifferences:
    """Lines `<pattern of case names>  <what>  <reason>`; # starts a comment.

    What: `refused`, `gradient_refused`, `skiff_refused` or `gradient_ops` as run_case says; a bound like `<=1e-7` for all
    variables; or the variables that may differ, with commas between them.
    """

    def __init__(self, lines):
        self.entries = [tuple(line.split(None, 2)) for line in lines if line.strip() and not line.startswith("#")]
        self.used = set()

    def _find(self, case, fits):
        for entry in self.entries:
            if fnmatch.fnmatchcase(case, entry[0]) and fits(entry[1]):
                self.used.add(entry)
                return True
        return False

    def refused(self, case, kind):
        return self._find(case, lambda what: what == kind)

    def differs(self, case, variable, difference):
        return self._find(case, lambda what: variable in what.split(",") or
                          what.startswith("<=") and difference <= float(what[2:]))

    def stale(self, ops):
        """Entries that no case needed, though cases of their op ran."""
        return [e for e in self.entries if e not in self.used and fnmatch.filter(ops, e[0].partition(".")[0])]


class Tally:
    """The results of the cases of an operator."""

    def __init__(self):
        self.counts = collections.Counter()
        self.largest = {"float32": 0.0, "float64": 0.0}

    def row(self, op):
        return [op, self.counts["same"], "%.1e" % self.largest["float64"], "%.1e" % self.largest["float32"],
                self.counts["empty"], self.counts["known"], self.counts["wrong"]]


def judge(description, result, known, tally):
    """Counts a case. Returns what is wrong with it, or ""."""
    name, dtype = description["name"], description["dtype"]
    kind, problems = "same", list(result.get("problems", []))
    if result.get("gradient_ops"):
        if known.refused(name, "gradient_ops"):
            kind = "known"
        else:
            problems += result["gradient_ops"]
    for refusal in ("skiff_refused", "refused", "gradient_refused"):
        if refusal not in result:
            continue
        if known.refused(name, refusal):
            kind = "known"
        elif description["empty"] and refusal != "skiff_refused":
            kind = "empty"
        else:
            problems.append("%s: %s" % (refusal, result[refusal]))
    for variable, difference in result.get("differences", {}).items():
        if difference <= BOUNDS[dtype]:
            tally.largest[dtype] = max(tally.largest[dtype], difference)
        elif known.differs(name, variable, difference):
            kind = "known"
        else:
            problems.append("%s differs by %.1e" % (variable, difference))
    if kind == "same" and not problems and not result.get("differences") and description["outputs"]:
        problems.append("nothing was compared")
    tally.counts["wrong" if problems else kind] += 1
    if kind == "same" and not problems and result.get("spelled_out"):
        tally.counts["spelled_out"] += 1
    return "; ".join(problems)


def main(root):
    import comparison
    import paddle_oracle  # Fails here, before any work, without PaddlePaddle.
    descriptions = load_descriptions(root)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "known_differences.txt"), encoding="utf-8") as f:
        known = KnownDifferences(f)
    tallies = collections.defaultdict(Tally)
    failures = []
    for description, result in zip(descriptions, children.run_all(__file__, root, len(descriptions), SILENCE_SECONDS)):
        problem = judge(description, result, known, tallies[description["op"]])
        if problem:
            failures.append("%s: %s" % (description["name"], problem))
    comparison.print_table(["operator", "same", "float64", "float32", "empty", "known", "wrong"],
                           [tally.row(op) for op, tally in tallies.items()])
    failures += ["known_differences.txt: nothing is like this any more: " + " ".join(entry).strip()
                 for entry in known.stale(sorted(tallies))]
    for failure in failures:
        print(failure)
    count = lambda kind: sum(tally.counts[kind] for tally in tallies.values())
    print("%d cases: %d the same (%d of them in other ops of PaddlePaddle's: update_ops.py), %d without elements, "
          "which PaddlePaddle refuses, %d known differences, %d wrong" %
          (len(descriptions), *map(count, ("same", "spelled_out", "empty", "known", "wrong"))))
    return 1 if failures or not descriptions else 0


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if len(arguments) == 2 and arguments[1].startswith("--from="):
        work(arguments[0], int(arguments[1].partition("=")[2]))
    elif len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__)
        sys.exit(0 if arguments == ["--help"] else 2)
    else:
        sys.exit(main(arguments[0]))
