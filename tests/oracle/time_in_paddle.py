#!/usr/bin/env python3
"""Times a training program in PaddlePaddle, with oneDNN where PaddlePaddle supports that.

usage: time_in_paddle.py DIR --steps=N

DIR is a program of write_training_programs. Prints the median of all steps but the first two, and the peak of
resident memory, on as many threads as OMP_NUM_THREADS says. Needs numpy and paddlepaddle==2.6.2.
"""
import argparse
import os
import resource
import statistics
import sys
import time

os.environ.setdefault("FLAGS_use_mkldnn", "1")
UNTIMED_STEPS = 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", metavar="DIR")
    parser.add_argument("--steps", type=int, default=10, help="training steps, 3 or more")
    arguments = parser.parse_args()
    if arguments.steps <= UNTIMED_STEPS:
        parser.error("--steps=%d: expected 3 or more" % arguments.steps)
    from paddle_oracle import PLACE, Session, load_program  # pylint: disable=import-outside-toplevel
    from comparison import load_arrays  # pylint: disable=import-outside-toplevel
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    session = Session()
    session.set(load_arrays(os.path.join(arguments.directory, "params.npz")))
    program = load_program(os.path.join(arguments.directory, "main.pb"))
    feed = load_arrays(os.path.join(arguments.directory, "feed.npz"))
    times = []
    for _ in range(arguments.steps):
        start = time.perf_counter()
        session.run(program, feed)
        times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print("PaddlePaddle on %s: %.2f ms a step (median of %d), peak RSS %.0f MB, %.0f before the program" %
          (PLACE, statistics.median(times[UNTIMED_STEPS:]) * 1e3, arguments.steps - UNTIMED_STEPS, peak / 1024,
           before / 1024))
    return 0


if __name__ == "__main__":
    sys.exit(main())
