"""PaddlePaddle as an oracle: the common part of the checks in this folder.

Loads programs and runs them in PaddlePaddle; comparison.py compares.
"""
import os
import sys

WANTED = "2.6.2"
# The sign of a program that cannot be checked, unlike one that was found wrong (1).
CANNOT_CHECK = 2
# A bool attribute of sums that Skiff keeps in float64. PaddlePaddle ignores it: there they are float32.
WIDE_ATTR = "wide_float32"
# What every op may have.
COMMON_ATTRS = {"op_role", "op_role_var", "op_namescope", "op_callstack", "op_device", "with_quant_attr", WIDE_ATTR}

os.environ.setdefault("GLOG_minloglevel", "2")


def _give_up(message):
    print("%s: %s" % (os.path.basename(sys.argv[0]), message), file=sys.stderr)
    sys.exit(CANNOT_CHECK)


try:
    import numpy as np
    import paddle
    from paddle.base import core
except ImportError as error:
    _give_up("%s can't do it (%s); give an interpreter with numpy and paddlepaddle==%s" %
             (sys.executable, error, WANTED))
if paddle.__version__ != WANTED:
    _give_up("%s has PaddlePaddle %s; the checks are against %s" % (sys.executable, paddle.__version__, WANTED))

paddle.enable_static()
PLACE = paddle.CPUPlace()


def load_program(path):
    with open(path, "rb") as f:
        return paddle.static.Program.parse_from_string(f.read())


def narrow_wide_sums(program):
    """Declares wide sums, and their roots, as PaddlePaddle makes them: float32. Returns their names."""
    narrowed = set()
    for block in program.blocks:
        for op in block.ops:
            is_wide = op.has_attr(WIDE_ATTR) and op.attr(WIDE_ATTR)
            if is_wide or (op.type == "sqrt" and narrowed.issuperset(op.input("X"))):
                narrowed.update(op.output("Out"))
                for name in op.output("Out"):
                    block.var(name).desc.set_dtype(core.VarDesc.VarType.FP32)
    return narrowed


def level_name(name, level):
    """What the offsets of a level of a ragged array are called, beside the array."""
    return "%s.lod%d" % (name, level)


def _with_offsets(arrays):
    """The arrays by name, those that have offsets beside them as ragged tensors."""
    offsets = {name for name in arrays if name.rpartition(".lod")[0] in arrays}
    result = {name: arrays[name] for name in arrays.keys() - offsets}
    for name in {name.rpartition(".lod")[0] for name in offsets}:
        levels = sum(other.startswith(name + ".lod") for other in offsets)
        result[name] = core.LoDTensor()
        result[name].set(arrays[name], PLACE)
        result[name].set_lod([arrays[level_name(name, level)].tolist() for level in range(levels)])
    return result


class Session:
    """A scope with the programs that run in it."""

    def __init__(self):
        self.scope = paddle.static.Scope()
        self.executor = paddle.static.Executor(PLACE)

    def run(self, program, feed=None, fetch=()):
        """One run; the fetched arrays by name, with the offsets of ragged ones (level_name)."""
        values = self.executor.run(program, feed=_with_offsets(feed or {}), fetch_list=list(fetch), scope=self.scope,
                                   return_numpy=False)
        arrays = {name: np.array(value) for name, value in zip(fetch, values)}
        for name, value in zip(fetch, values):
            for level, offsets in enumerate(value.lod()):
                arrays[level_name(name, level)] = np.array(offsets, np.int64)
        return arrays

    def set(self, arrays):
        for name, array in arrays.items():
            self.scope.var(name).get_tensor().set(array, PLACE)

    def get(self, name):
        """The array of a variable, or None if there is none."""
        var = self.scope.find_var(name)
        if var is None or not var.get_tensor()._is_initialized():
            return None
        return np.array(var.get_tensor())


def _admits(wanted, found):
    """Returns whether an attribute may have a type; PaddlePaddle converts ints to longs where it needs longs."""
    ints, longs = 3, 11  # numbers of framework.proto
    return found == wanted or (wanted, found) == (longs, ints)


def input_slots(op_type):
    """The names of the input slots of an operator that PaddlePaddle has."""
    return [slot.name for slot in paddle.base.framework.OpProtoHolder.instance().op_proto_map[op_type].inputs]


def unknown_to_paddle(program):
    """Slots and attributes of a program's forward ops that PaddlePaddle doesn't have, in words."""
    protos = paddle.base.framework.OpProtoHolder.instance().op_proto_map
    problems = set()
    for op in (op for block in program.blocks for op in block.ops):
        proto = protos.get(op.type)
        if proto is None:  # A gradient op: it runs or it doesn't.
            continue
        types = {attr.name: int(attr.type) for attr in proto.attrs}
        slots = {slot.name for slot in [*proto.inputs, *proto.outputs]}
        for name in set(op.input_names) | set(op.output_names):
            if name not in slots:
                problems.add("%s has no slot %s" % (op.type, name))
        for name in op.attr_names:
            if name not in types and name not in COMMON_ATTRS:
                problems.add("%s has no attribute %s" % (op.type, name))
            elif name in types and not _admits(types[name], int(op.desc.attr_type(name))):
                problems.add("%s: attribute %s has another type" % (op.type, name))
    return sorted(problems)


def dims_admit(dims, shape):
    """Whether an array of `shape` is one that a variable described by `dims` may hold."""
    return len(dims) == len(shape) and all(d in (-1, s) for d, s in zip(dims, shape))


def described(var):
    """(dims, dtype) of a variable's description, the dtype as NumPy names it."""
    return tuple(var.shape), np.dtype(paddle.base.data_feeder.convert_dtype(var.dtype))
