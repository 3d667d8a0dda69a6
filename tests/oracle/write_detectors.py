#!/usr/bin/env python3
"""Writes programs of detectors that end in non-maximum suppression, and what PaddlePaddle detects with them.

usage: write_detectors.py DIR

DIR/paddle_yolo and DIR/paddle_ssd become folders of tests/tools/run_program: main.pb, params.npz, feed.npz and
found.npz. paddle_yolo has two heads of YOLOv3 as PaddlePaddle 2.6 writes them (multiclass_nms3); paddle_ssd is an SSD
in the dialect of Fluid 1.6 (multiclass_nms). Needs numpy and paddlepaddle==2.6.2 in the interpreter that runs it.

Sources: fluid/layers/detection.py (multi_box_head, detection_output), PaddleDetection's YOLOv3.
"""
import os
import sys

if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
    print(__doc__)
    sys.exit(0 if sys.argv[1:] == ["--help"] else 2)

import numpy as np
from paddle.base.proto import framework_pb2

from paddle_oracle import Session, paddle
from write_old_dialects import SINCE_1_7, SINCE_2_0, append, dialect, drop_attrs

PIXELS, CLASSES = 32, 3


def block_op(op_type, inputs, outputs, attrs):
    """Appends an op with outputs of these names."""
    block = paddle.static.default_main_program().global_block()
    made = {slot: block.create_var(name=name, dtype=dtype) for slot, (name, dtype) in outputs.items()}
    block.append_op(type=op_type, inputs=inputs, outputs=made, attrs=attrs)


# ---- YOLOv3


def conv_bn(x, filters, kernel, stride=1):
    x = paddle.static.nn.conv2d(x, filters, kernel, stride, (kernel - 1) // 2, bias_attr=False)
    return paddle.nn.functional.leaky_relu(paddle.static.nn.batch_norm(x, is_test=True), 0.1)


def head(x, anchors, stride, size):
    predicted = paddle.static.nn.conv2d(x, len(anchors) // 2 * (5 + CLASSES), 1)
    boxes, scores = paddle.vision.ops.yolo_box(predicted, size, anchors, CLASSES, 0.3, stride, True, scale_x_y=1.05)
    return boxes, paddle.transpose(scores, [0, 2, 1])


def yolo():
    image = paddle.static.data("image", [-1, 3, PIXELS, PIXELS], "float32")
    size = paddle.static.data("size", [-1, 2], "int32")
    fine = conv_bn(conv_bn(image, 4, 3, 2), 8, 3, 2)
    coarse = conv_bn(fine, 8, 3, 2)
    wide = paddle.nn.functional.interpolate(conv_bn(coarse, 4, 1), scale_factor=2)
    fine = conv_bn(paddle.concat([wide, fine], axis=1), 8, 3)
    heads = [head(coarse, [10, 14, 23, 27], 8, size), head(fine, [5, 6, 9, 4], 4, size)]
    block_op("multiclass_nms3",
             {"BBoxes": paddle.concat([boxes for boxes, _ in heads], axis=1),
              "Scores": paddle.concat([scores for _, scores in heads], axis=2)},
             {"Out": ("detections", "float32"), "Index": ("index", "int32"), "NmsRoisNum": ("counts", "int32")},
             {"background_label": -1, "score_threshold": 0.2, "nms_top_k": 40, "nms_threshold": 0.45, "keep_top_k": 12,
              "normalized": False, "nms_eta": 1.0})
    return ["detections", "index", "counts"]


# ---- SSD


def moved(x, width):
    """Predictions of a feature map [N, C, H, W] as rows [N, boxes, width]."""
    rows, _ = append("transpose2", {"X": x}, ["Out", "XShape"], {"axis": [0, 2, 3, 1]})
    return append("reshape2", {"X": rows}, ["Out", "XShape"], {"shape": [0, -1, width]})[0]


def priors(x, image, least, most):
    boxes = append("prior_box", {"Input": x, "Image": image}, ["Boxes", "Variances"],
                   {"min_sizes": [least], "max_sizes": [most], "aspect_ratios": [2.0], "flip": True, "clip": True,
                    "variances": [0.1, 0.1, 0.2, 0.2], "step_w": 0.0, "step_h": 0.0, "offset": 0.5,
                    "min_max_aspect_ratios_order": False})
    return [append("reshape2", {"X": each}, ["Out", "XShape"], {"shape": [-1, 4]})[0] for each in boxes]


def joined(parts, axis):
    return append("concat", {"X": parts}, ["Out"], {"axis": axis})[0]


def ssd():
    image = paddle.static.data("image", [-1, 3, PIXELS, PIXELS], "float32")
    first = paddle.static.nn.conv2d(image, 6, 3, 4, 1, act="relu")
    maps = [first, paddle.static.nn.conv2d(first, 8, 3, 2, 1, act="relu")]
    of_cell = 4
    places = [moved(paddle.static.nn.conv2d(x, of_cell * 4, 3, 1, 1), 4) for x in maps]
    scores = [moved(paddle.static.nn.conv2d(x, of_cell * CLASSES, 3, 1, 1), CLASSES) for x in maps]
    sizes = [(6.0, 10.0), (12.0, 20.0)]
    prior_boxes, variances = zip(*[priors(x, image, *each) for x, each in zip(maps, sizes)])
    boxes, = append("box_coder",
                    {"PriorBox": joined(list(prior_boxes), 0), "PriorBoxVar": joined(list(variances), 0),
                     "TargetBox": joined(places, 1)}, ["OutputBox"],
                    {"code_type": "decode_center_size", "box_normalized": True, "axis": 0})
    of_classes, = append("softmax", {"X": joined(scores, 1)}, ["Out"], {"axis": -1})
    of_classes, _ = append("transpose2", {"X": of_classes}, ["Out", "XShape"], {"axis": [0, 2, 1]})
    block_op("multiclass_nms", {"BBoxes": boxes, "Scores": of_classes}, {"Out": ("detections", "float32")},
             {"background_label": 0, "score_threshold": 0.34, "nms_top_k": 60, "nms_threshold": 0.45, "keep_top_k": 15,
              "normalized": True, "nms_eta": 1.0})
    return ["detections"]


# ---- files


def images(names):
    draw = np.random.RandomState(3)
    # Of few different numbers, so that the file is small.
    feed = {"image": (draw.randint(0, 4, (2, 3, PIXELS, PIXELS)) / 4).astype("float32")}
    return {**feed, "size": np.array([[60, 80], [33, 47]], "int32")} if "size" in names else feed


def without_places(desc):
    for op in desc.blocks[0].ops:
        drop_attrs(op, {"op_callstack"})
    return desc.SerializeToString()


def write(folder, build, serialize):
    os.makedirs(folder, exist_ok=True)
    at = lambda name: os.path.join(folder, name)
    main, startup = paddle.static.Program(), paddle.static.Program()
    main.random_seed = startup.random_seed = 5
    with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
        names = build()
    main = main.clone(for_test=True)
    with open(at("main.pb"), "wb") as f:
        f.write(serialize(framework_pb2.ProgramDesc.FromString(main.desc.serialize_to_string())))
    session = Session()
    session.run(startup)
    np.savez_compressed(at("params.npz"), **{v.name: session.get(v.name) for v in main.list_vars() if v.persistable})
    feed = images(main.global_block().vars)
    np.savez_compressed(at("feed.npz"), **feed)
    found = session.run(main, feed, names)
    np.savez_compressed(at("found.npz"), **found)
    print("%s: %d detections\n%s" % (folder, len(found["detections"]), found["detections"]))


def main(folder):
    write(os.path.join(folder, "paddle_yolo"), yolo, without_places)
    write(os.path.join(folder, "paddle_ssd"), ssd,
          lambda desc: dialect(desc, 1006000, SINCE_2_0 | SINCE_1_7).SerializeToString())


if __name__ == "__main__":
    main(sys.argv[1])
