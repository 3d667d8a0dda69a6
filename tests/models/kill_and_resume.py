#!/usr/bin/python3
"""Checks that a training killed with SIGKILL at random moments and resumed ends like an uninterrupted one.

usage: kill_and_resume.py [--runs=N] [--seed=N] [--kills=N] [--ranks=N] PROGRAM [flags of the program]

Arguments after PROGRAM are passed to the program.

    bazel build --config=opt //models/mlp:train
    tests/models/kill_and_resume.py bazel-bin/models/mlp/train --limit_samples=2000 --save_every=1

PROGRAM is the train program of a model. It trains to the end once. Then, N times, it is started anew, killed up to
--kills times, and resumed until it is done; every run is killed at least once. These must be equal, bit by bit: the
weights, the inference model of the best epoch, the training log except for times, and what the last checkpoint holds
besides the weights, such as states of the optimizer and a loss scale with its counters.

With --ranks=N, mpirun starts N ranks, of which a drawn one is killed; the launcher must then end within 30 seconds,
with a status other than 0. A drawn half of the trainings goes on in a single process, so the flags need a
--global_batch of N batches, which fill an epoch. (The one process has sums of gradients in its checkpoints, which then
aren't compared.)

    tests/models/kill_and_resume.py --ranks=3 bazel-bin/models/mlp/train --limit_samples=1920 --batch_size=32 \
        --global_batch=96 --save_every=1 --threads=1

Exit status: 0 if all runs end so; 1 if one doesn't, or the program fails.
"""
import argparse
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))

from mpirun import launcher, variables  # noqa: E402

END_SECONDS = 30  # in which all ranks have ended after one was killed


class Failed(Exception):
    pass


def saves(folder, prefix):
    """The folders in the checkpoint directory of an output directory whose names start so, in order."""
    path = os.path.join(folder, "checkpoints")
    names = os.listdir(path) if os.path.isdir(path) else []
    return [os.path.join(path, name) for name in sorted(names) if name.startswith(prefix)]


def cut_off_saves(folder, since):
    """How many half-written saves a kill has left of a training that began at the time `since`.

    Those of an earlier kill stay until the next save begins; a folder that was being deleted holds older files, too.
    """
    return sum(any(entry.stat().st_mtime >= since for entry in os.scandir(path))
               for path in saves(folder, ".tmp-save-") if not os.path.basename(path).startswith(".tmp-save-removed-"))


def outcome(folder, output):
    """What must be equal of a training that has ended: {what: value}."""
    weights = re.search(r"^weights ([0-9a-f]{16})$", output, re.MULTILINE)
    if not weights:
        raise Failed("the program printed no weights:\n" + output)
    model = hashlib.sha256()
    for name in sorted(os.listdir(os.path.join(folder, "model"))):
        with open(os.path.join(folder, "model", name), "rb") as stream:
            model.update(name.encode() + b"\0" + stream.read())
    epochs = []
    with open(os.path.join(folder, "training_log.jsonl"), encoding="utf-8") as stream:
        for line in stream:
            record = json.loads(line)
            for clock in ("seconds", "samples_per_second"):
                del record[clock]
            epochs.append(record)
    found = {"weights": weights.group(1), "model": model.hexdigest(), "log": epochs, "checkpoint": None}
    for path in saves(folder, "save-")[-1:]:
        with open(os.path.join(path, "tensors"), "rb") as stream:
            found["checkpoint"] = hashlib.sha256(stream.read()).hexdigest()
    return found


class Training:
    """A command that trains, alone or as ranks, and is killed."""

    def __init__(self, command, ranks):
        self.command = command
        self.ranks = ranks
        self.slowest_end = 0.0  # seconds from the kill of a rank to the end of all

    def run(self, folder, kill_after=None, ranks=None):
        """Trains in the folder, from its newest checkpoint or anew. The output, or None if it was killed."""
        arguments = [*self.command, "--output_dir=" + folder]
        if saves(folder, "save-"):
            arguments.append("--resume")
        else:
            # A model without a checkpoint, which a kill at the end of the first epoch leaves, would be refused.
            shutil.rmtree(folder, ignore_errors=True)
        ranks = self.ranks if ranks is None else ranks
        if ranks == 0:
            with subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True) as process:
                return self.end(process, arguments, kill_after, process.kill)
        with tempfile.TemporaryDirectory() as pids:
            noted = 'echo $$ > "%s/$OMPI_COMM_WORLD_RANK.new"; mv "%s/$OMPI_COMM_WORLD_RANK"{.new,}; exec "$@"'
            start = [*launcher(ranks), "bash", "-c", noted % (pids, pids), "bash", *arguments]
            with subprocess.Popen(start, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, env=variables()) as process:
                return self.end(process, start, kill_after, lambda: kill_rank(pids, random.randrange(ranks)))

    def end(self, process, arguments, kill_after, kill):
        """Waits, kills after some seconds, and waits again. The output, or None if it was killed."""
        try:
            output, _ = process.communicate(timeout=kill_after)
        except subprocess.TimeoutExpired:
            killed = time.monotonic()
            kill()
            try:
                output, _ = process.communicate(timeout=END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                raise Failed("%s hasn't ended %d s after the kill" % (" ".join(arguments), END_SECONDS)) from None
            self.slowest_end = max(self.slowest_end, time.monotonic() - killed)
            # It may have been done just before.
            if process.returncode != 0:
                return None
        if process.returncode != 0:
            raise Failed("%s: exit status %d\n%s" % (" ".join(arguments), process.returncode, output))
        return output

    def killed_and_resumed(self, folder, seconds, most_kills):
        """Trains to the end through kills: its outcome, the checkpoints it was killed after, the saves cut off.

        `seconds` is what an unbroken training takes. One that ends before it was ever killed begins anew, to be killed
        sooner.
        """
        latest, torn = [], 0
        while True:
            kill_after = random.uniform(0, seconds) if len(latest) < most_kills else None
            start = time.time()
            alone = self.ranks > 0 and latest and random.randrange(2) == 1
            output = self.run(folder, kill_after, 0 if alone else None)
            if output is None:
                complete = saves(folder, "save-")
                latest.append(complete[-1].rpartition("-")[2] if complete else "none")
                torn += cut_off_saves(folder, start)
            elif latest:
                found = outcome(folder, output)
                if alone:
                    found["checkpoint"] = None
                return found, latest, torn
            else:
                shutil.rmtree(folder)
                seconds /= 2


def kill_rank(pids, rank):
    """Kills the rank, whose process notes its number in the folder when it starts."""
    path = os.path.join(pids, str(rank))
    while not os.path.exists(path):
        time.sleep(0.001)
    with open(path, encoding="ascii") as stream:
        pid = int(stream.read())
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has ended


def main():
    parser = argparse.ArgumentParser(usage="kill_and_resume.py [--runs=N] [--seed=N] [--kills=N] [--ranks=N] PROGRAM [flags]",
                                     allow_abbrev=False)
    parser.add_argument("--runs", type=int, default=20, help="trainings that are killed (default 20)")
    parser.add_argument("--seed", type=int, default=7, help="of the moments of the kills (default 7)")
    parser.add_argument("--kills", type=int, default=3, help="most kills of a training (default 3)")
    parser.add_argument("--ranks", type=int, default=0, help="that mpirun starts; 0: the program alone (default)")
    parser.add_argument("program")
    parser.add_argument("flags", nargs=argparse.REMAINDER, help="of the program")
    options = parser.parse_args()
    if options.runs < 1 or options.kills < 1 or options.ranks < 0:
        parser.error("expected at least one run and one kill, and no negative number of ranks")
    random.seed(options.seed)
    training = Training([os.path.abspath(options.program), *options.flags], options.ranks)
    different = kills = torn = 0
    with tempfile.TemporaryDirectory(prefix="kill_and_resume-") as folder:
        path = os.path.join(folder, "unbroken")
        start = time.monotonic()
        wanted = outcome(path, training.run(path))
        seconds = time.monotonic() - start
        print("unbroken: weights %s, %.1f s" % (wanted["weights"], seconds))
        print("run  kills  cut-off saves  weights           equal  step of the newest checkpoint at each kill", flush=True)
        for run in range(1, options.runs + 1):
            path = os.path.join(folder, str(run))
            found, latest, cut_off = training.killed_and_resumed(path, seconds, random.randint(1, options.kills))
            wrong = [what for what, value in wanted.items() if found[what] not in (value, None)]
            print("%3d  %5d  %13d  %s  %-5s  %s" % (run, len(latest), cut_off, found["weights"],
                                                    "no: " + ", ".join(wrong) if wrong else "yes", " ".join(latest)),
                  flush=True)
            different += bool(wrong)
            kills += len(latest)
            torn += cut_off
            shutil.rmtree(path)
    print("%d of %d runs ended as the unbroken one; %d kills, %d saves cut off" % (options.runs - different, options.runs,
                                                                                 kills, torn))
    if options.ranks > 0:
        print("after a kill, all ranks ended within %.1f s" % training.slowest_end)
    return 1 if different else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        sys.exit("error: %s" % failure)
