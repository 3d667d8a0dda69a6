#!/usr/bin/env python3
"""Writes a text CNN as old versions of Fluid wrote it, and the losses of its training in PaddlePaddle.

usage: write_old_dialects.py DIR

DIR becomes tests/tools/run_program/old_text_cnn: fluid_1_6.pb, fluid_1_8.pb and fluid_2_4.pb, which are the same
network in three dialects, params.npz, feed.npz, and losses.npz with the losses of 20 steps (under the name "loss").
Needs numpy and paddlepaddle==2.6.2 in the interpreter that runs it.

PaddlePaddle makes the ops, their gradients and the optimizer's ops; what the old versions wrote differently is then
changed in the ProgramDesc. Sources: fluid/layers/nn.py, fluid/nets.py (sequence_conv_pool), fluid/optimizer.py and
framework.proto of the versions.
"""
import os
import sys

if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
    print(__doc__)
    sys.exit(0 if sys.argv[1:] == ["--help"] else 2)

import numpy as np
from paddle.base.layer_helper import LayerHelper
from paddle.base.proto import framework_pb2

from paddle_oracle import Session, level_name, paddle

STEPS = 20
LENGTHS, WORDS, WIDTH, FILTERS, CLASSES = [5, 1, 9, 3, 3, 7], 30, 6, 4, 3
ATTR_TYPES = framework_pb2.AttrType


def append(op_type, inputs, outputs, attrs=None, dtype="float32"):
    """Appends an op; its outputs in the order of the slots."""
    helper = LayerHelper(op_type)
    dtype_of = lambda slot: "int64" if slot == "Indices" else dtype
    made = {slot: helper.create_variable_for_type_inference(dtype_of(slot)) for slot in outputs}
    helper.append_op(type=op_type, inputs=inputs, outputs=made, attrs=attrs or {})
    return [made[slot] for slot in outputs]


def parameter(shape, is_bias=False):
    return LayerHelper("text_cnn").create_parameter(paddle.ParamAttr(), shape, "float32", is_bias=is_bias)


def with_bias(x, width):
    return append("elementwise_add", {"X": x, "Y": parameter([width], is_bias=True)}, ["Out"], {"axis": 1})[0]


def conv_pool(rows, length, pool):
    """fluid.nets.sequence_conv_pool."""
    conv, = append("sequence_conv", {"X": rows, "Filter": parameter([length * WIDTH, FILTERS])}, ["Out"],
                   {"contextStart": -(length // 2), "contextLength": length, "contextStride": 1})
    active, = append("tanh", {"X": with_bias(conv, FILTERS)}, ["Out"])
    return append("sequence_pool", {"X": active}, ["Out", "MaxIndex"], {"pooltype": pool})[0]


def build():
    """(main program, startup program, loss) with the ops that fluid.layers wrote for a text CNN."""
    main, startup = paddle.static.Program(), paddle.static.Program()
    startup.random_seed = 1
    with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
        words = paddle.static.data("words", [-1, 1], "int64", lod_level=1)
        label = paddle.static.data("label", [-1, 1], "int64")
        rows, = append("lookup_table", {"W": parameter([WORDS, WIDTH]), "Ids": words}, ["Out"], {"padding_idx": -1})
        pools = [conv_pool(rows, 3, "SQRT"), conv_pool(rows, 4, "MAX")]
        products = [append("mul", {"X": pool, "Y": parameter([FILTERS, CLASSES])}, ["Out"],
                           {"x_num_col_dims": 1, "y_num_col_dims": 1})[0] for pool in pools]
        logits = with_bias(append("sum", {"X": products}, ["Out"])[0], CLASSES)
        probabilities, = append("softmax", {"X": logits}, ["Out"])
        losses = append("cross_entropy2", {"X": probabilities, "Label": label}, ["Y", "MatchX", "XShape"])[0]
        loss, = append("mean", {"X": losses}, ["Out"])
        best, places = append("top_k", {"X": probabilities}, ["Out", "Indices"], {"k": 1})
        append("accuracy", {"Out": best, "Indices": places, "Label": label}, ["Accuracy", "Correct", "Total"])
        paddle.optimizer.Adam(1e-2, epsilon=1e-5).minimize(loss)
    return main, startup, loss


def feed():
    draw = np.random.RandomState(1)
    return {"words": draw.randint(0, WORDS, (sum(LENGTHS), 1)), level_name("words", 0): np.cumsum([0, *LENGTHS]),
            "label": draw.randint(0, CLASSES, (len(LENGTHS), 1))}


# ---- dialects


def drop_attrs(op, names):
    kept = [attr for attr in op.attrs if attr.name not in names]
    del op.attrs[:]
    op.attrs.extend(kept)


def set_attr(op, name, value):
    """Sets a bool, a float, an int or a text."""
    kind, field = {bool: (ATTR_TYPES.BOOLEAN, "b"), float: (ATTR_TYPES.FLOAT, "f"), int: (ATTR_TYPES.INT, "i"),
                   str: (ATTR_TYPES.STRING, "s")}[type(value)]
    setattr(op.attrs.add(name=name, type=kind), field, value)


def drop_slots(op, names):
    """Drops input and output slots."""
    for slots in (op.inputs, op.outputs):
        kept = [slot for slot in slots if slot.parameter not in names]
        del slots[:]
        slots.extend(kept)


def reduce_to_vectors(block):
    """Gives means the shape [1], which they had before 2.5."""
    for var in block.vars:
        tensor = var.type.lod_tensor.tensor
        if var.type.type == framework_pb2.VarType.LOD_TENSOR and var.name.startswith(("mean_", "accuracy_")):
            del tensor.dims[:]
            tensor.dims.append(1)
    for op in (op for op in block.ops if op.type == "fill_constant"):
        for attr in (attr for attr in op.attrs if attr.name == "shape"):
            del attr.longs[:]
            attr.longs.append(1)


def forget_moments_of_moments(block):
    """Before 1.7, adam didn't write Beta1PowOut and Beta2PowOut: scale ops did that after the updates."""
    scales = []
    for op in (op for op in block.ops if op.type == "adam"):
        drop_slots(op, ("Beta1PowOut", "Beta2PowOut"))
        beta = {attr.name: attr.f for attr in op.attrs}
        for slot, name in (("Beta1Pow", "beta1"), ("Beta2Pow", "beta2")):
            power = next(list(s.arguments) for s in op.inputs if s.parameter == slot)
            scale = framework_pb2.OpDesc(type="scale")
            scale.inputs.add(parameter="X", arguments=power)
            scale.outputs.add(parameter="Out", arguments=power)
            set_attr(scale, "scale", beta[name])
            set_attr(scale, "op_role", 2)
            scales.append(scale)
    block.ops.extend(scales)


# Attributes and slots that came with a version.
SINCE_2_0 = {"with_quant_attr", "str_value", "place_type", "entry", "table_class", "slot", "use_global_beta_pow",
             "multi_precision", "min_row_size_to_use_multithread"}
SINCE_1_7 = {"op_device", "entry_config", "mkldnn_data_type", "use_quantizer", "Scale_x", "Scale_y", "Scale_out"}
NEW_SLOTS = {"Beta1Tensor", "Beta2Tensor", "EpsilonTensor", "MasterParam", "SkipUpdate"}
# What ops had besides: hints for cuDNN, oneDNN and layouts.
OLD_HINTS = {"softmax": {"use_cudnn": False, "is_test": False, "data_format": "AnyLayout"},
             "mul": {"use_mkldnn": False}, "tanh": {"use_cudnn": False},
             "elementwise_add": {"x_data_format": "", "y_data_format": ""}}


def dialect(desc, version, since):
    """The ProgramDesc without attributes, slots and fields that came later, with the hints of the time."""
    program = framework_pb2.ProgramDesc()
    program.CopyFrom(desc)
    program.ClearField("op_version_map")
    program.version.version = version
    block = program.blocks[0]
    reduce_to_vectors(block)
    for var in block.vars:
        for field in ("is_parameter", "stop_gradient", "need_check_feed", "attrs"):
            var.ClearField(field)
    for op in block.ops:
        drop_attrs(op, since | {"op_callstack"})
        drop_slots(op, NEW_SLOTS if since else ())
        if op.type.startswith("lookup_table"):
            drop_attrs(op, {"is_test"} if since else ())
        known = {attr.name for attr in op.attrs}
        for name, value in OLD_HINTS.get(op.type.replace("_grad", ""), {}).items():
            if since and name not in known:
                set_attr(op, name, value)
    return program


def fluid_1_6(desc):
    program = dialect(desc, 1006000, SINCE_2_0 | SINCE_1_7)
    forget_moments_of_moments(program.blocks[0])
    # Field 3, which later versions reserved: op_compatible_map {default_required_version = "1.6.0"}.
    return program.SerializeToString() + b"\x1a\x07\x12\x051.6.0"


def fluid_1_8(desc):
    return dialect(desc, 1008000, SINCE_2_0).SerializeToString()


def fluid_2_4(desc):
    program = dialect(desc, 2004000, set())
    program.op_version_map.CopyFrom(desc.op_version_map)
    return program.SerializeToString()


def main(folder):
    os.makedirs(folder, exist_ok=True)
    at = lambda name: os.path.join(folder, name)
    program, startup, loss = build()
    desc = framework_pb2.ProgramDesc.FromString(program.desc.serialize_to_string())
    for write in (fluid_1_6, fluid_1_8, fluid_2_4):
        with open(at(write.__name__ + ".pb"), "wb") as f:
            f.write(write(desc))
    session = Session()
    session.run(startup)
    np.savez_compressed(at("params.npz"), **{v.name: session.get(v.name) for v in program.list_vars() if v.persistable})
    np.savez_compressed(at("feed.npz"), **feed())
    losses = [float(session.run(program, feed(), [loss.name])[loss.name]) for _ in range(STEPS)]
    np.savez_compressed(at("losses.npz"), **{loss.name: np.array(losses)})
    print("%s falls from %.3f to %.3f" % (loss.name, losses[0], losses[-1]))


if __name__ == "__main__":
    main(sys.argv[1])
