"""Measures what a step costs from Python beyond C++: a chain of small ops, whose kernels compute next to nothing.

usage: PYTHONPATH=... step.py [--feeds=N] [DISPATCH_BENCH]
The first ops add N feeds up (1). With the path of tools/dispatch_bench, whose program is the same, the difference to C++ is printed as well.
"""
import argparse
import re
import statistics
import subprocess
import time

import numpy

import skiff
from skiff import layers

OPS = 10
STEPS = 20000


def feed_names(feeds):
    return ["v0"] + [f"feed{i}" for i in range(1, feeds)]


def chain(feeds):
    """A compiled chain: each op reads what the one before wrote. The first ones add the feeds after v0."""
    main = skiff.Program()
    with skiff.program_guard(main, skiff.Program()):
        x, *others = [layers.data(name, [1]) for name in feed_names(feeds)]
        for i in range(OPS):
            if i < len(others):
                x = x + others[i]
            else:
                x = layers.scale(x, scale=0.5) if i % 2 == 0 else x + x
    return skiff.Executor().compile(main), x


def median_microseconds(call):
    for _ in range(100):
        call()
    times = []
    for _ in range(STEPS):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e6


def cpp_microseconds(dispatch_bench, feeds):
    text = subprocess.run([dispatch_bench, f"--ops={OPS}", f"--steps={STEPS}", f"--feeds={feeds}"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    return OPS * float(re.search(r"median ([\d.]+) us", text)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dispatch_bench", nargs="?")
    parser.add_argument("--feeds", type=int, default=1, choices=range(1, OPS + 1), metavar="N")
    options = parser.parse_args()
    step, last = chain(options.feeds)
    feed = {name: numpy.ones(1, "float32") for name in feed_names(options.feeds)}
    bound = step.bind(feed, [last])
    nothing = median_microseconds(lambda: None)
    times = {"bound.step()": median_microseconds(bound.step) - nothing,
             "step.run()": median_microseconds(lambda: step.run(feed, [last])) - nothing}
    cpp = cpp_microseconds(options.dispatch_bench, options.feeds) if options.dispatch_bench else None
    if cpp is not None:
        print(f"C++ Step(): {cpp:.2f} us")
    for name, value in times.items():
        print(f"{name}: {value:.2f} us" + ("" if cpp is None else f", {value - cpp:+.2f} us"))


if __name__ == "__main__":
    main()
