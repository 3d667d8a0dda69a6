"""Expresses in PaddlePaddle's ops what Skiff's update ops can do in addition, so that their results can be compared.

An update op of Skiff's takes the tensors of many parameters, forms the gradient from Grad, rescale_grad,
GradScale and a decay, and may be skipped (operators/optimizer/kernels/update_op.h). Here it becomes an op
of PaddlePaddle's a parameter, or one with lists as PaddlePaddle wants them, with the gradient formed by
ops before it: scalings, products and sums. What it then computes is left to PaddlePaddle's kernel.
Attributes that this kernel, the CPU's, passes over, unlike PaddlePaddle's documentation and its kernel of
CUDA, become ops, too. So do two things about gradients that are selected rows: PaddlePaddle takes their norm
once they are merged, and its adam advances the powers before it reads them, if both are one variable.
"""
from paddle_oracle import COMMON_ATTRS, core, paddle

# Attributes that PaddlePaddle lacks, and the values at which an op means what PaddlePaddle's means.
PLAIN = {"regularization_method": "", "regularization_coeff": None, "rescale_grad": 1.0, "is_flat": False,
         "lars_policy": "decay_and_norms", "max_num_accumulates": 16384}
# Attributes that PaddlePaddle's CPU kernel ignores: rescale_grad and, except in the decay, lr_ratio.
IGNORED = {("momentum", "rescale_grad"), ("adamw", "lr_ratio")}
# PaddlePaddle's ops that require an entry per parameter where Skiff accepts one for all.
LIST_ATTRS = {"lars_momentum": ["lars_weight_decay"],
              "merged_momentum": ["regularization_method", "regularization_coeff"]}


class Untranslatable(Exception):
    """PaddlePaddle has no ops for it."""


def is_update(op):
    return "LearningRate" in op.input_names or op.type == "average_accumulates"


class _Update:
    """One update op of a program. `is_spelled_out`: whether more than its own name had to be said."""

    def __init__(self, program, index, values):
        self.block = program.global_block()
        self.index = index
        self.values = values  # arrays by name: what the program is fed and starts from
        op = self.block.ops[index]
        self.type = op.type
        self.inputs = {slot: list(op.input(slot)) for slot in op.input_names if op.input(slot)}
        self.outputs = {slot: list(op.output(slot)) for slot in op.output_names if op.output(slot)}
        self.attrs = {name: op.attr(name) for name in op.attr_names}
        proto = paddle.base.framework.OpProtoHolder.instance().op_proto_map[op.type]
        self.slots = {slot.name: slot.duplicable for slot in [*proto.inputs, *proto.outputs]}
        self.known_attrs = {attr.name for attr in proto.attrs if (op.type, attr.name) not in IGNORED}
        self.param = "Param" if "Param" in self.inputs else "param"
        self.count = len(self.inputs[self.param])
        self.is_spelled_out = False

    def translate(self):
        self.block._remove_op(self.index)
        self.is_spelled_out = "SkipUpdate" in self.inputs and "SkipUpdate" not in self.slots
        if self.is_spelled_out and self._is_skipped():
            return
        self._form_gradients()
        self._form_rate()
        for name in set(self.attrs) & set(PLAIN):
            if name in self.known_attrs:
                continue
            value = self.attrs.pop(name)
            if PLAIN[name] not in (None, value):
                raise Untranslatable("%s has no %s = %s" % (self.type, name, value))
        self.is_spelled_out = self.is_spelled_out or self.count > 1
        if self.type == "adam" and _is_sparse(self.block, self.inputs["Grad"][0]):
            self._append_sparse_adam()
            return
        if self.slots[self.param]:
            self._append(self._lists(self.inputs), self.outputs, self._list_attrs())
            return
        for i in range(self.count):
            self._append(self._of(i, self.inputs), self._of(i, self.outputs), self.attrs)

    def _is_skipped(self):
        return bool(self.values[self.inputs.pop("SkipUpdate")[0]].item())

    def _of(self, i, arguments):
        """Those of parameter i."""
        return {slot: [names[i] if len(names) == self.count else names[0]] for slot, names in arguments.items()}

    def _lists(self, arguments):
        """With an argument a parameter for each."""
        return {slot: names if len(names) == self.count else names * self.count for slot, names in arguments.items()}

    def _list_attrs(self):
        attrs = dict(self.attrs)
        for name in LIST_ATTRS.get(self.type, []):
            if len(attrs.get(name, [])) == 1:
                attrs[name] = list(attrs[name]) * self.count
        return attrs

    def _append(self, inputs, outputs, attrs):
        # Anything that PaddlePaddle doesn't have would be omitted silently.
        for name in [*inputs, *outputs]:
            if name not in self.slots:
                raise Untranslatable("%s has no slot %s" % (self.type, name))
        for name in attrs:
            if name not in self.known_attrs and name not in COMMON_ATTRS:
                raise Untranslatable("%s has no attribute %s" % (self.type, name))
        self.block._insert_op(self.index, type=self.type, inputs=inputs, outputs=outputs, attrs=attrs)
        self.index += 1

    def _append_sparse_adam(self):
        powers = {slot: self.outputs[slot][0] for slot in ("Beta1PowOut", "Beta2PowOut")}
        for slot, name in powers.items():
            self.outputs[slot] = [name + ".next"]
            self.block.create_var(name=name + ".next", shape=[1], dtype=self.block.var(name).dtype)
        self._append(self.inputs, self.outputs, self.attrs)
        for name in powers.values():
            self.block._insert_op(self.index, type="assign", inputs={"X": [name + ".next"]}, outputs={"Out": [name]})
            self.index += 1

    def _compute(self, op_type, inputs, like, attrs=None):
        """The name of the only output of an op, of the shape of `like`."""
        var = self.block.var(like)
        name = "%s.%d" % (op_type, self.index)
        self.block.create_var(name=name, shape=var.shape, dtype=var.dtype)
        self.block._insert_op(self.index, type=op_type, inputs=inputs, outputs={"Out": [name]}, attrs=attrs or {})
        self.index += 1
        return name

    def _scaled(self, name, factor):
        return self._compute("scale", {"X": [name]}, name, {"scale": factor})

    def _decay_of(self, i):
        """(method, coefficient) of parameter i."""
        entry = lambda value, default: value if not isinstance(value, (list, tuple)) else default if not value else \
            value[i if len(value) > 1 else 0]
        return (entry(self.attrs.get("regularization_method", ""), ""),
                entry(self.attrs.get("regularization_coeff", 0.0), 0.0))

    def _forms_itself(self):
        """Returns whether PaddlePaddle's op does everything that this op does."""
        methods = {self._decay_of(i)[0] for i in range(self.count)}
        decays = methods == {""} or "regularization_method" in self.known_attrs and methods <= {"", "l2_decay"}
        rescales = self.attrs.get("rescale_grad", 1.0) == 1.0 or "rescale_grad" in self.known_attrs
        return decays and rescales and "GradScale" not in self.inputs

    def _form_gradients(self):
        if self._forms_itself():
            return
        self.is_spelled_out = True
        rescale = self.attrs.pop("rescale_grad", 1.0)
        scale = self.inputs.pop("GradScale", [None])[0]
        grads = []
        for i, (param, grad) in enumerate(zip(self.inputs["Param"], self.inputs["Grad"])):
            if rescale != 1.0:
                grad = self._scaled(grad, rescale)
            if scale is not None:
                grad = self._compute("elementwise_mul", {"X": [grad], "Y": [scale]}, grad)
            method, coefficient = self._decay_of(i)
            if method:
                source = self._compute("sign", {"X": [param]}, param) if method == "l1_decay" else param
                grad = self._compute("sum", {"X": [grad, self._scaled(source, coefficient)]}, grad)
            grads.append(grad)
        self.inputs["Grad"] = grads
        self.attrs.pop("regularization_method", None)
        self.attrs.pop("regularization_coeff", None)

    def _form_rate(self):
        ratio = self.attrs.pop("lr_ratio", 1.0)
        if ratio != 1.0:
            self.is_spelled_out = True
            self.inputs["LearningRate"] = [self._scaled(rate, ratio) for rate in self.inputs["LearningRate"]]


def _is_sparse(block, name):
    return block.var(name).type == core.VarDesc.VarType.SELECTED_ROWS


def _merge_rows(block, index):
    """Before a norm of selected rows: makes a tensor of them, each row once."""
    norm = block.ops[index].desc
    rows = norm.input("X")[0]
    dtype = block.var(rows).dtype
    block.create_var(name=rows + ".merged", dtype=dtype, type=core.VarDesc.VarType.SELECTED_ROWS)
    block.create_var(name=rows + ".values", dtype=dtype)
    norm.set_input("X", [rows + ".values"])
    for op_type, source, result in (("get_tensor_from_selected_rows", ".merged", ".values"),
                                    ("merge_selected_rows", "", ".merged")):
        block._insert_op(index, type=op_type, inputs={"X": [rows + source]}, outputs={"Out": [rows + result]})


def translate_updates(program, values):
    """Replaces the update ops of a program; its results, from `values` (arrays by name), stay the same.

    Whether more than PaddlePaddle's op of the same name was needed. Throws Untranslatable where
    PaddlePaddle can't say it.
    """
    block = program.global_block()
    index, is_spelled_out = 0, False
    while index < len(block.ops):
        count = len(block.ops)
        if block.ops[index].type == "squared_l2_norm" and _is_sparse(block, block.ops[index].input("X")[0]):
            _merge_rows(block, index)
            is_spelled_out = True
        elif is_update(block.ops[index]):
            update = _Update(program, index, values)
            update.translate()
            is_spelled_out = is_spelled_out or update.is_spelled_out
        index += 1 + len(block.ops) - count
    return is_spelled_out
