#!/usr/bin/env python3
"""Writes a beam search as Fluid's documentation has it, and the hypotheses that PaddlePaddle finds with it.

usage: write_beam_search.py DIR

DIR then holds main.pb, params.npz, feed.npz, and found.npz with the hypotheses and their scores. DIR is
tests/tools/run_program/paddle_beam_search; a test there compares the hypotheses that Skiff finds. The program is
that of Fluid 1.x: a while whose states, ids and scores are in arrays, with rows and LoDs that differ from iteration to
iteration. What PaddlePaddle 2.6 has no layers for any more is appended as ops.
Needs numpy and paddlepaddle==2.6.2 in the interpreter that runs it.
"""
import os
import sys

if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
    print(__doc__)
    sys.exit(0 if sys.argv[1:] == ["--help"] else 2)

import numpy as np

from paddle_oracle import Session, level_name, paddle

SOURCES, WIDTH, TOKENS, BEAM, END, MOST = 4, 8, 9, 3, 1, 7


def op(kind, inputs, output_slots, attrs=None, dtypes=None):
    """Appends an op; its outputs."""
    block = paddle.static.default_main_program().current_block()
    first = next(iter(inputs.values()))[0]
    make = lambda slot: block.create_var(name=paddle.utils.unique_name.generate(kind + "_" + slot), lod_level=2,
                                         dtype=(dtypes or {}).get(slot, first.dtype))
    outputs = {slot: make(slot) for slot in output_slots}
    block.append_op(type=kind, inputs=inputs, outputs={slot: [v] for slot, v in outputs.items()}, attrs=attrs or {})
    return [outputs[slot] for slot in output_slots]


def build():
    """The hypotheses and their scores."""
    context = paddle.static.data("context", [-1, WIDTH])
    first_ids = paddle.static.data("first_ids", [-1, 1], "int64", lod_level=2)
    first_scores = paddle.static.data("first_scores", [-1, 1], "float32", lod_level=2)
    step = paddle.full([1], 0, "int64")
    most = paddle.full([1], MOST, "int64")
    states, ids, scores = (paddle.tensor.create_array(dtype) for dtype in ("float32", "int64", "float32"))
    for value, array in ((context, states), (first_ids, ids), (first_scores, scores)):
        paddle.tensor.array_write(value, step, array)
    goes_on = paddle.less_than(step, most)
    loop = paddle.static.nn.control_flow.While(goes_on)
    with loop.block():
        last, score = paddle.tensor.array_read(ids, step), paddle.tensor.array_read(scores, step)
        state, = op("sequence_expand", {"X": [paddle.tensor.array_read(states, step)], "Y": [score]}, ["Out"])
        word = paddle.static.nn.embedding(paddle.squeeze(last, [1]), [TOKENS, WIDTH])
        weight = lambda width: paddle.create_parameter([WIDTH, width], "float32")
        dense = lambda x, width: op("mul", {"X": [x], "Y": [weight(width)]}, ["Out"])[0]
        state = paddle.tanh(dense(state, WIDTH) + dense(word, WIDTH))
        ragged, = op("lod_reset", {"X": [state], "Y": [score]}, ["Out"])
        probabilities, = op("softmax", {"X": [dense(ragged, TOKENS)]}, ["Out"], {"axis": -1})
        best, best_ids = op("top_k", {"X": [probabilities]}, ["Out", "Indices"], {"k": 5}, {"Indices": "int64"})
        logarithm, = op("log", {"X": [best]}, ["Out"])
        total, = op("elementwise_add", {"X": [logarithm], "Y": [paddle.reshape(score, [-1])]}, ["Out"], {"axis": 0})
        selected, selected_scores, _ = op(
            "beam_search", {"pre_ids": [last], "pre_scores": [score], "ids": [best_ids], "scores": [total]},
            ["selected_ids", "selected_scores", "parent_idx"],
            {"level": 0, "beam_size": BEAM, "end_id": END, "is_accumulated": True},
            {"selected_scores": "float32", "parent_idx": "int32"})
        paddle.increment(step)
        for value, array in ((state, states), (selected, ids), (selected_scores, scores)):
            paddle.tensor.array_write(value, step, array)
        is_empty = paddle.is_empty(selected)
        paddle.assign(paddle.logical_and(paddle.less_than(step, most), paddle.logical_not(is_empty)), goes_on)
    return op("beam_search_decode", {"Ids": [ids], "Scores": [scores]}, ["SentenceIds", "SentenceScores"],
              {"beam_size": BEAM, "end_id": END}, {"SentenceScores": "float32"})


def write(folder):
    os.makedirs(folder, exist_ok=True)
    at = lambda name: os.path.join(folder, name)
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
        found = build()
    for block in main.blocks:
        for made in block.ops:
            made.desc.remove_attr("op_callstack")
    with open(at("main.pb"), "wb") as f:
        f.write(main.desc.serialize_to_string())
    draw = np.random.RandomState(5)
    params = {p.name: draw.uniform(-1.2, 1.2, p.shape).astype("float32") for p in main.all_parameters()}
    np.savez_compressed(at("params.npz"), **params)
    feed = {"context": draw.uniform(-1, 1, (SOURCES, WIDTH)).astype("float32"),
            "first_ids": np.zeros((SOURCES, 1), "int64"), "first_scores": np.zeros((SOURCES, 1), "float32")}
    for name in ("first_ids", "first_scores"):
        feed.update({level_name(name, level): np.arange(SOURCES + 1) for level in range(2)})
    np.savez_compressed(at("feed.npz"), **feed)
    session = Session()
    session.set(params)
    np.savez_compressed(at("found.npz"), **session.run(main, feed, [v.name for v in found]))


if __name__ == "__main__":
    write(sys.argv[1])
