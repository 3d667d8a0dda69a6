#!/usr/bin/env python3
"""Writes a tagger as LAC's lexical analysis of Fluid 1.x has it, and what PaddlePaddle computes in its training.

usage: write_lexical_analysis.py DIR

DIR is tests/tools/run_program/paddle_lexical_analysis: main.pb, params.npz, feed.npz, losses.npz with the losses of 20
steps (under the name "loss"), and found.npz with the tags, the scores of chunks and the loss of each sentence in the
last step; a test there compares what Skiff computes. The network is that of the published model, smaller: embeddings,
two layers of gru in both directions, scores of the tags, linear_chain_crf, crf_decoding and chunk_eval, on ragged
sentences, of which one has a single word. What PaddlePaddle 2.6 has no layers for any more is appended as ops.
Needs numpy and paddlepaddle==2.6.2 in the interpreter that runs it.
"""
import os
import sys

if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
    print(__doc__)
    sys.exit(0 if sys.argv[1:] == ["--help"] else 2)

import numpy as np
from paddle.base.layer_helper import LayerHelper

from paddle_oracle import Session, level_name, paddle

STEPS = 20
LENGTHS, WORDS, WIDTH, HIDDEN, TYPES, LAYERS = [5, 1, 8, 3], 30, 6, 5, 2, 2
TAGS = 2 * TYPES + 1  # IOB


def append(op_type, inputs, outputs, attrs=None, integers=()):
    """Appends an op; its outputs in the order of the slots."""
    helper = LayerHelper(op_type)
    made = {slot: helper.create_variable_for_type_inference("int64" if slot in integers else "float32")
            for slot in outputs}
    helper.append_op(type=op_type, inputs=inputs, outputs=made, attrs=attrs or {})
    return [made[slot] for slot in outputs]


def parameter(shape, is_bias=False, name=None):
    return LayerHelper("lac").create_parameter(paddle.ParamAttr(name=name), shape, "float32", is_bias=is_bias)


def fc(x, inputs, width):
    product, = append("mul", {"X": x, "Y": parameter([inputs, width])}, ["Out"],
                      {"x_num_col_dims": 1, "y_num_col_dims": 1})
    return append("elementwise_add", {"X": product, "Y": parameter([width], is_bias=True)}, ["Out"], {"axis": 1})[0]


def gru(x, inputs, is_reverse):
    """fluid.layers.dynamic_gru on a product of x."""
    return append("gru", {"Input": fc(x, inputs, 3 * HIDDEN), "Weight": parameter([HIDDEN, 3 * HIDDEN]),
                          "Bias": parameter([1, 3 * HIDDEN], is_bias=True)},
                  ["Hidden", "BatchGate", "BatchResetHiddenPrev", "BatchHidden"],
                  {"is_reverse": is_reverse, "gate_activation": "sigmoid", "activation": "tanh"})[0]


def build():
    """The loss, and what is compared of the last step."""
    words = paddle.static.data("words", [-1, 1], "int64", lod_level=1)
    tags = paddle.static.data("tags", [-1, 1], "int64", lod_level=1)
    rows, = append("lookup_table", {"W": parameter([WORDS, WIDTH]), "Ids": words}, ["Out"], {"padding_idx": -1})
    width = WIDTH
    for _ in range(LAYERS):
        both = [gru(rows, width, is_reverse) for is_reverse in (False, True)]
        rows, = append("concat", {"X": both}, ["Out"], {"axis": 1})
        width = 2 * HIDDEN
    scores = fc(rows, width, TAGS)
    transitions = parameter([TAGS + 2, TAGS], name="crfw")
    losses = append("linear_chain_crf", {"Emission": scores, "Transition": transitions, "Label": tags},
                    ["Alpha", "EmissionExps", "TransitionExps", "LogLikelihood"])[3]
    loss, = append("mean", {"X": losses}, ["Out"])
    path, = append("crf_decoding", {"Emission": scores, "Transition": transitions}, ["ViterbiPath"],
                   integers=["ViterbiPath"])
    counts = ["NumInferChunks", "NumLabelChunks", "NumCorrectChunks"]
    chunks = append("chunk_eval", {"Inference": path, "Label": tags}, ["Precision", "Recall", "F1-Score", *counts],
                    {"num_chunk_types": TYPES, "chunk_scheme": "IOB", "excluded_chunk_types": []}, integers=counts)
    paddle.optimizer.SGD(0.3).minimize(loss)
    return loss, [losses, path, *chunks]


def feed():
    """Words whose tags they tell, but for those that the word before decides."""
    draw = np.random.RandomState(3)
    words = draw.randint(0, WORDS, sum(LENGTHS))
    tags = np.where(words % 3 == 0, 2 * TYPES, 2 * (words % TYPES) + (np.roll(words, 1) % 2))
    offsets = np.cumsum([0, *LENGTHS])
    return {"words": words[:, None], level_name("words", 0): offsets,
            "tags": tags[:, None], level_name("tags", 0): offsets}


def write(folder):
    os.makedirs(folder, exist_ok=True)
    at = lambda name: os.path.join(folder, name)
    main, startup = paddle.static.Program(), paddle.static.Program()
    startup.random_seed = 1
    with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
        loss, found = build()
    for made in main.global_block().ops:
        made.desc.remove_attr("op_callstack")
    with open(at("main.pb"), "wb") as f:
        f.write(main.desc.serialize_to_string())
    session = Session()
    session.run(startup)
    np.savez_compressed(at("params.npz"), **{v.name: session.get(v.name) for v in main.list_vars() if v.persistable})
    np.savez_compressed(at("feed.npz"), **feed())
    steps = [session.run(main, feed(), [loss.name, *(v.name for v in found)]) for _ in range(STEPS)]
    np.savez_compressed(at("losses.npz"), **{loss.name: np.array([float(step[loss.name]) for step in steps])})
    np.savez_compressed(at("found.npz"), **{name: value for name, value in steps[-1].items() if name != loss.name})
    print("%s falls from %.3f to %.3f" % (loss.name, float(steps[0][loss.name]), float(steps[-1][loss.name])))


if __name__ == "__main__":
    write(sys.argv[1])
