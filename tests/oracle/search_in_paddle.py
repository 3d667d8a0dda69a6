#!/usr/bin/env python3
"""Runs in PaddlePaddle what tests/models/seq2seq/write_translation_search.cc wrote.

usage: search_in_paddle.py DIR

Adds DIR/found.npz: the hypotheses ("ids") and their scores ("scores"), each with its offsets.
Needs numpy and paddlepaddle==2.6.2 in the interpreter that runs it.
"""
import os
import sys

if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
    print(__doc__)
    sys.exit(0 if sys.argv[1:] == ["--help"] else 2)

import numpy as np

from paddle_oracle import Session, level_name, load_program


def search(folder):
    at = lambda name: os.path.join(folder, name)
    with open(at("fetches.txt"), encoding="utf-8") as f:
        fetches = f.read().split()
    session = Session()
    session.set(dict(np.load(at("params.npz"))))
    fetched = session.run(load_program(at("main.pb")), dict(np.load(at("feed.npz"))), fetches)
    found = {}
    for name, fetch in zip(("ids", "scores"), fetches):
        found[name] = fetched[fetch]
        found.update({level_name(name, level): fetched[level_name(fetch, level)] for level in range(2)})
    np.savez_compressed(at("found.npz"), **found)


if __name__ == "__main__":
    search(sys.argv[1])
