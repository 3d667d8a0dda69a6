"""Measures what a step costs from Python beyond C++: a chain of small ops, whose kernels compute next to nothing.

usage: PYTHONPATH=... step.py [DISPATCH_BENCH]
With the path of tools/dispatch_bench, whose program is the same, the difference to C++ is printed as well.
"""
import re
import statistics
import subprocess
import sys
import time

import numpy

import skiff
from skiff import layers

OPS = 10
STEPS = 20000


def chain():
    """A compiled chain: each op reads what the one before wrote."""
    main = skiff.Program()
    with skiff.program_guard(main, skiff.Program()):
        x = layers.data("v0", [1])
        for i in range(OPS):
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


def main():
    step, last = chain()
    feed = {"v0": numpy.ones(1, "float32")}
    bound = step.bind(feed, [last])
    nothing = median_microseconds(lambda: None)
    times = {"bound.step()": median_microseconds(bound.step), "step.run()": median_microseconds(
        lambda: step.run(feed, [last]))}
    if len(sys.argv) > 1:
        text = subprocess.run([sys.argv[1], f"--ops={OPS}", f"--steps={STEPS}"], check=True, stdout=subprocess.PIPE,
                              text=True).stdout
        cpp = OPS * float(re.search(r"median ([\d.]+) us", text)[1])
        print(f"C++ Step(): {cpp:.2f} us")
    for name, value in times.items():
        print(f"{name}: {value - nothing:.2f} us" + (f", {value - nothing - cpp:+.2f} us" if len(sys.argv) > 1 else ""))


if __name__ == "__main__":
    main()
