#!/usr/bin/env python3
"""Writes two published networks that read text and end in CTC, small, and what PaddlePaddle computes with them.

usage: write_ctc_programs.py DIR

DIR/paddle_crnn: the CRNN-CTC of the model repository of Fluid 1.x (ocr_recognition/crnn_ctc_model.py): groups of
conv2d, batch_norm and pool2d; im2sequence; a gru in each direction; warpctc on ragged logits and labels with
norm_by_times; and in the same training program ctc_greedy_decoder (top_k, ctc_align) and edit_distance. Momentum.
DIR/paddle_text_head: a recognition head as PaddleOCR 2 trains it: convolution, an lstm in both directions over the
columns, a linear layer, nn.CTCLoss (warpctc with lengths) and the softmax that is exported. Adam.

Each folder is one of tests/tools/run_program: main.pb, params.npz, feed.npz, losses.npz (the loss of each of 20 steps)
and found.npz (what the first step fetches besides). Needs numpy and paddlepaddle==2.6.2 in the interpreter that runs
it.
"""
import os
import sys

if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
    print(__doc__)
    sys.exit(0 if sys.argv[1:] == ["--help"] else 2)

import numpy as np
import numpy.random  # before paddle, whose zlib it would take

from paddle.base.layer_helper import LayerHelper

from paddle_oracle import Session, level_name, paddle

STEPS = 20
IMAGES, HEIGHT, COLUMNS, CLASSES = 3, 8, 20, 5
LABELS = [[1, 2, 2], [0], [3, 1, 4, 0]]


def append(op_type, inputs, outputs, attrs=None, dtypes=None):
    """Appends an op; its outputs in the order of the slots."""
    helper = LayerHelper(op_type)
    made = {slot: helper.create_variable_for_type_inference((dtypes or {}).get(slot, "float32")) for slot in outputs}
    helper.append_op(type=op_type, inputs=inputs, outputs=made, attrs=attrs or {})
    return [made[slot] for slot in outputs]


def parameter(shape, is_bias=False):
    return LayerHelper("crnn").create_parameter(paddle.ParamAttr(), shape, "float32", is_bias=is_bias)


def fc(xs, size):
    products = [append("mul", {"X": x, "Y": parameter([x.shape[-1], size])}, ["Out"],
                       {"x_num_col_dims": 1, "y_num_col_dims": 1})[0] for x in xs]
    total = append("sum", {"X": products}, ["Out"])[0] if len(products) > 1 else products[0]
    return append("elementwise_add", {"X": total, "Y": parameter([size], is_bias=True)}, ["Out"], {"axis": 1})[0]


def crnn():
    """(loss, what to fetch besides)"""
    image = paddle.static.data("image", [-1, 1, HEIGHT, COLUMNS])
    label = paddle.static.data("label", [-1, 1], "int32", lod_level=1)
    x = image
    for filters in (4, 6):
        x = paddle.static.nn.conv2d(x, filters, 3, padding=1, bias_attr=False)
        x = paddle.static.nn.batch_norm(x, act="relu")
        x = paddle.nn.functional.max_pool2d(x, 2, 2)
    columns, = append("im2sequence", {"X": x}, ["Out"],
                      {"kernels": [HEIGHT // 4, 1], "strides": [1, 1], "paddings": [0, 0, 0, 0]})
    columns.desc.set_shape([-1, 6 * HEIGHT // 4])
    hidden = 5
    states = []
    for is_reverse in (False, True):
        gates = fc([columns], 3 * hidden)
        inputs = {"Input": gates, "Weight": parameter([hidden, 3 * hidden]),
                  "Bias": parameter([1, 3 * hidden], is_bias=True)}
        states.append(append("gru", inputs, ["Hidden", "BatchGate", "BatchResetHiddenPrev", "BatchHidden"],
                             {"is_reverse": is_reverse, "gate_activation": "sigmoid", "activation": "relu",
                              "origin_mode": False})[0])
        states[-1].desc.set_shape([-1, hidden])
    logits = fc(states, CLASSES + 1)
    logits.desc.set_shape([-1, CLASSES + 1])
    losses, _ = append("warpctc", {"Logits": logits, "Label": label}, ["Loss", "WarpCTCGrad"],
                       {"blank": CLASSES, "norm_by_times": True})
    loss = paddle.sum(losses)
    _, best = append("top_k", {"X": logits}, ["Out", "Indices"], {"k": 1}, {"Indices": "int64"})
    read, = append("ctc_align", {"Input": best}, ["Output"], {"blank": CLASSES, "merge_repeated": True},
                   {"Output": "int64"})
    distances, count = append("edit_distance", {"Hyps": read, "Refs": paddle.cast(label, "int64")},
                              ["Out", "SequenceNum"], {"normalized": False}, {"SequenceNum": "int64"})
    paddle.optimizer.Momentum(0.02, 0.9, weight_decay=paddle.regularizer.L2Decay(4e-4)).minimize(loss)
    return loss, [losses, best, read, distances, count]


def text_head():
    """(loss, what to fetch besides)"""
    image = paddle.static.data("image", [-1, 1, HEIGHT, COLUMNS])
    label = paddle.static.data("label", [-1, max(map(len, LABELS))], "int32")
    length = paddle.static.data("length", [-1], "int64")
    x = paddle.nn.Conv2D(1, 4, 3, stride=(2, 2), padding=1, bias_attr=False)(image)
    x = paddle.nn.functional.hardswish(paddle.nn.BatchNorm2D(4)(x))
    x = paddle.nn.functional.max_pool2d(x, [HEIGHT // 2, 1])
    x = paddle.transpose(paddle.squeeze(x, axis=2), [0, 2, 1])
    x, _ = paddle.nn.LSTM(4, 5, num_layers=1, direction="bidirectional")(x)
    logits = paddle.nn.Linear(10, CLASSES + 1)(x)
    probabilities = paddle.nn.functional.softmax(logits, axis=2)
    by_step = paddle.transpose(logits, [1, 0, 2])
    steps = paddle.full([IMAGES], COLUMNS // 2, "int64")
    losses = paddle.nn.CTCLoss(blank=0, reduction="none")(by_step, label, steps, length)
    loss = paddle.mean(losses)
    paddle.optimizer.Adam(0.02).minimize(loss)
    return loss, [losses, probabilities]


def feed(is_padded):
    draw = np.random.RandomState(4)
    arrays = {"image": draw.uniform(0, 1, (IMAGES, 1, HEIGHT, COLUMNS)).astype("float32")}
    if not is_padded:
        arrays["label"] = np.array(sum(LABELS, []), "int32").reshape(-1, 1)
        arrays[level_name("label", 0)] = np.cumsum([0, *map(len, LABELS)])
        return arrays
    # 0 is the blank.
    arrays["label"] = np.array([[id + 1 for id in ids] + [0] * (max(map(len, LABELS)) - len(ids)) for ids in LABELS],
                               "int32")
    arrays["length"] = np.array([len(ids) for ids in LABELS], "int64")
    return arrays


def write(folder, build, is_padded):
    os.makedirs(folder, exist_ok=True)
    at = lambda name: os.path.join(folder, name)
    main, startup = paddle.static.Program(), paddle.static.Program()
    startup.random_seed = 6
    with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
        loss, besides = build()
    for op in (op for block in main.blocks for op in block.ops):
        op.desc.remove_attr("op_callstack")
    with open(at("main.pb"), "wb") as f:
        f.write(main.desc.serialize_to_string())
    session = Session()
    session.run(startup)
    held = {v.name: session.get(v.name) for v in main.list_vars() if v.persistable}
    np.savez_compressed(at("params.npz"), **{name: array for name, array in held.items() if array is not None})
    np.savez_compressed(at("feed.npz"), **feed(is_padded))
    names = [v.name for v in [loss, *besides]]
    runs = [session.run(main, feed(is_padded), names) for _ in range(STEPS)]
    np.savez_compressed(at("found.npz"), **{name: array for name, array in runs[0].items() if name != loss.name})
    losses = [float(run[loss.name]) for run in runs]
    np.savez_compressed(at("losses.npz"), **{loss.name: np.array(losses)})
    print("%s: %s falls from %.3f to %.3f" % (os.path.basename(folder), loss.name, losses[0], losses[-1]))


if __name__ == "__main__":
    write(os.path.join(sys.argv[1], "paddle_crnn"), crnn, is_padded=False)
    write(os.path.join(sys.argv[1], "paddle_text_head"), text_head, is_padded=True)
