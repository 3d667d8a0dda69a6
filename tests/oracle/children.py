"""Runs a list of programs in a child process, and starts a new one when PaddlePaddle aborts it.

A script of this folder calls itself with --from=N; the child prints a line of JSON for each program from
number N on. Needs nothing but Python.
"""
import json
import os
import subprocess
import sys
import tempfile
import threading


def _results_from(script, root, first, silence_seconds):
    """Yields the results of one child until it ends, aborts or is silent for too long; then why it stopped."""
    command = [sys.executable, "-W", "ignore", os.path.abspath(script), root, "--from=%d" % first]
    with tempfile.TemporaryFile("w+") as messages, subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=messages, text=True) as child:
        while True:
            timer = threading.Timer(silence_seconds, child.kill)
            timer.start()
            line = child.stdout.readline()
            timer.cancel()
            if not line:
                break
            if line.startswith("{"):
                yield json.loads(line)
        if child.wait() > 0:  # Not a signal: a mistake of the script.
            messages.seek(0)
            sys.exit(messages.read())
    yield {"refused": "PaddlePaddle aborted or hung (exit status %d)" % child.returncode}


def run_all(script, root, count, silence_seconds):
    """The results of `count` programs, in their order; {"refused": why} of one that ends the child."""
    results = []
    while len(results) < count:
        results += _results_from(script, root, len(results), silence_seconds)
    return results[:count]


def report(results):
    """The child's part: prints one result a line."""
    for result in results:
        print(json.dumps(result), flush=True)
