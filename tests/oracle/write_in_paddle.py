#!/usr/bin/env python3
"""Writes training programs with PaddlePaddle's own layers and trains them, for Skiff to do the same.

usage: write_in_paddle.py DIR [--fixture]

DIR/<name>/ then holds main.pb, startup.pb, params.npz (all persistable variables after the startup
program), feed.npz, and paddle.npz with the losses of 20 steps; DIR/programs.json lists the programs,
and DIR/skiff_jobs.jsonl is for tools/run_program. compare_with_paddle.py compares (run.sh does all).
With --fixture, DIR becomes tests/tools/run_program with what the tests there need of some programs: the folders
of FIXTURES. They are without the stacks of the calls that made their ops, which name folders of a machine.
Needs numpy and paddlepaddle==2.6.2 in the interpreter that runs it.
"""
import json
import os
import sys

if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-") or sys.argv[2:] not in ([], ["--fixture"]):
    print(__doc__)
    sys.exit(0 if sys.argv[1:] == ["--help"] else 2)

import numpy as np

from paddle.base.layer_helper import LayerHelper

from paddle_oracle import Session, level_name, paddle

STEPS = 20
nn, functional, optimizers, amp = paddle.nn, paddle.nn.functional, paddle.optimizer, paddle.static.amp


# ---- networks: each returns (loss, other variables to watch)


class Images:
    """Convolutions, batch normalization, both poolings and fully connected layers."""

    BATCH = 16

    @staticmethod
    def build(dtype):
        static = paddle.static.nn
        image = paddle.static.data("image", [-1, 1, 28, 28], dtype)
        label = paddle.static.data("label", [-1, 1], "int64")
        # No bias before a normalization: its gradient is only rounding, and so is everything that depends on it.
        hidden = functional.relu(static.batch_norm(static.conv2d(image, 6, 5, padding=2, bias_attr=False)))
        hidden = functional.max_pool2d(hidden, 2, 2)
        hidden = static.conv2d(hidden, 16, 5, act="relu")
        hidden = functional.avg_pool2d(hidden, 2, 2)
        hidden = static.fc(hidden, 84, activation="tanh")
        logits = static.fc(hidden, 10)
        loss = paddle.mean(functional.softmax_with_cross_entropy(logits, label))
        return loss, [paddle.static.accuracy(functional.softmax(logits), label)]

    @classmethod
    def feed(cls, dtype):
        draw = np.random.RandomState(1)
        return {"image": draw.uniform(-2, 2, (cls.BATCH, 1, 28, 28)).astype(dtype),
                "label": draw.randint(0, 10, (cls.BATCH, 1))}


class Encoder:
    """A transformer encoder that predicts a class for each word: embeddings of words and positions, attention in
    heads (reshape, transpose, matmul, softmax), layer normalization, gelu."""

    BATCH, LENGTH, WORDS, WIDTH, HEADS, CLASSES = 4, 6, 20, 8, 2, 5
    DROPOUT = 0.0
    # No biases in attention: softmax cancels the bias of the keys, so its gradient is only rounding.
    ATTENTION_BIAS = False

    @classmethod
    def build(cls, dtype):
        words = paddle.static.data("words", [-1, cls.LENGTH], "int64")
        positions = paddle.static.data("positions", [-1, cls.LENGTH], "int64")
        # Added to the scores of attention: a large negative number for positions without a word.
        mask = paddle.static.data("mask", [-1, 1, 1, cls.LENGTH], dtype)
        label = paddle.static.data("label", [-1, cls.LENGTH, 1], "int64")
        hidden = nn.Embedding(cls.WORDS, cls.WIDTH)(words) + nn.Embedding(cls.LENGTH, cls.WIDTH)(positions)
        layer = nn.TransformerEncoderLayer(cls.WIDTH, cls.HEADS, 2 * cls.WIDTH, dropout=cls.DROPOUT, activation="gelu",
                                           bias_attr=[cls.ATTENTION_BIAS, None])
        hidden = nn.TransformerEncoder(layer, 1)(hidden, mask)
        logits = nn.Linear(cls.WIDTH, cls.CLASSES)(hidden)
        return paddle.mean(functional.softmax_with_cross_entropy(logits, label)), []

    @classmethod
    def feed(cls, dtype):
        draw = np.random.RandomState(1)
        lengths = draw.randint(2, cls.LENGTH + 1, cls.BATCH)
        positions = np.tile(np.arange(cls.LENGTH), (cls.BATCH, 1))
        missing = positions >= lengths[:, np.newaxis]
        return {"words": draw.randint(0, cls.WORDS, (cls.BATCH, cls.LENGTH)), "positions": positions,
                "mask": np.where(missing, -1e4, 0.0).astype(dtype)[:, np.newaxis, np.newaxis, :],
                "label": draw.randint(0, cls.CLASSES, (cls.BATCH, cls.LENGTH, 1))}


class DropoutEncoder(Encoder):
    """The same as usual: with dropout and all biases."""

    DROPOUT = 0.1
    ATTENTION_BIAS = None


class Word2Vec:
    """Predicts a word from four before it, by one table of embeddings."""

    BATCH, CONTEXT, WORDS, WIDTH = 32, 4, 50, 8
    SPARSE = False

    @classmethod
    def build(cls, dtype):
        context = [paddle.static.data("word_%d" % i, [-1, 1], "int64") for i in range(cls.CONTEXT)]
        target = paddle.static.data("target", [-1, 1], "int64")
        table = nn.Embedding(cls.WORDS, cls.WIDTH, sparse=cls.SPARSE)
        embedded = paddle.concat([paddle.reshape(table(word), [-1, cls.WIDTH]) for word in context], axis=1)
        hidden = functional.sigmoid(nn.Linear(cls.CONTEXT * cls.WIDTH, 32)(embedded))
        logits = nn.Linear(32, cls.WORDS)(hidden)
        return paddle.mean(functional.cross_entropy(logits, target)), []

    @classmethod
    def feed(cls, dtype):
        text = np.random.RandomState(1).randint(0, cls.WORDS, cls.BATCH + cls.CONTEXT)
        column = lambda i: text[i:i + cls.BATCH, np.newaxis]
        return {**{"word_%d" % i: column(i) for i in range(cls.CONTEXT)}, "target": column(cls.CONTEXT)}


class SparseWord2Vec(Word2Vec):
    """The same with sparse gradients: selected rows, four of them added up."""

    SPARSE = True


class Texts:
    """Classifies ragged texts: an embedding, what `encode` makes of it, a pooling of each text."""

    LENGTHS, WORDS, WIDTH, CLASSES = [5, 1, 9, 3, 3, 7], 30, 6, 3

    @classmethod
    def build(cls, dtype):
        ids = paddle.static.data("ids", [-1], "int64", lod_level=1)
        label = paddle.static.data("label", [-1, 1], "int64")
        rows = paddle.static.nn.embedding(ids, [cls.WORDS, cls.WIDTH], dtype=dtype)
        logits = paddle.static.nn.fc(cls.encode(rows, dtype), cls.CLASSES)
        return paddle.mean(functional.softmax_with_cross_entropy(logits, label)), []

    @classmethod
    def feed(cls, dtype):
        draw = np.random.RandomState(1)
        return {"ids": draw.randint(0, cls.WORDS, sum(cls.LENGTHS)),
                level_name("ids", 0): np.cumsum([0, *cls.LENGTHS]),
                "label": draw.randint(0, cls.CLASSES, (len(cls.LENGTHS), 1))}


def recurrence(op_type, inputs, sizes, outputs, attrs, dtype):
    """The states [rows, size] of a whole-sequence operator, for which this PaddlePaddle has no layer any more."""
    helper = LayerHelper(op_type)
    made = {slot: helper.create_variable_for_type_inference(dtype) for slot in outputs}
    parameters = {slot: helper.create_parameter(paddle.ParamAttr(), shape, dtype, is_bias=slot == "Bias")
                  for slot, shape in sizes.items()}
    helper.append_op(type=op_type, inputs={**inputs, **parameters}, outputs=made, attrs=attrs)
    return made["Hidden"]


class LstmTexts(Texts):
    """An LSTM with peepholes forwards, one without them backwards."""

    SIZE = 5

    @classmethod
    def lstm(cls, rows, dtype, peepholes, is_reverse):
        gates = paddle.static.nn.fc(rows, 4 * cls.SIZE, bias_attr=False)
        return recurrence("lstm", {"Input": gates},
                          {"Weight": [cls.SIZE, 4 * cls.SIZE], "Bias": [1, (7 if peepholes else 4) * cls.SIZE]},
                          ["Hidden", "Cell", "BatchGate", "BatchCellPreAct"],
                          {"use_peepholes": peepholes, "is_reverse": is_reverse, "gate_activation": "sigmoid",
                           "cell_activation": "tanh", "candidate_activation": "tanh"}, dtype)

    @classmethod
    def encode(cls, rows, dtype):
        pool = paddle.static.nn.sequence_lod.sequence_pool
        forwards, backwards = cls.lstm(rows, dtype, True, False), cls.lstm(rows, dtype, False, True)
        return paddle.concat([pool(forwards, "last"), pool(forwards, "max"), pool(backwards, "average")], axis=1)


class GruTexts(Texts):
    """A GRU forwards, another one backwards in the mode of the original paper."""

    SIZE = 5

    @classmethod
    def gru(cls, rows, dtype, origin_mode, is_reverse):
        gates = paddle.static.nn.fc(rows, 3 * cls.SIZE, bias_attr=False)
        return recurrence("gru", {"Input": gates}, {"Weight": [cls.SIZE, 3 * cls.SIZE], "Bias": [1, 3 * cls.SIZE]},
                          ["Hidden", "BatchGate", "BatchResetHiddenPrev", "BatchHidden"],
                          {"origin_mode": origin_mode, "is_reverse": is_reverse, "gate_activation": "sigmoid",
                           "activation": "tanh"}, dtype)

    @classmethod
    def encode(cls, rows, dtype):
        pool = paddle.static.nn.sequence_lod.sequence_pool
        forwards, backwards = cls.gru(rows, dtype, False, False), cls.gru(rows, dtype, True, True)
        return paddle.concat([pool(forwards, "last"), pool(forwards, "sqrt"), pool(backwards, "first")], axis=1)


class CnnTexts(Texts):
    """Convolutions over 3 and over 4 words, and the largest value or the sum of each filter.

    In float32 only: PaddlePaddle's sequence_conv reads float64 as float32 and refuses it.
    """

    DTYPES = ("float32",)

    @classmethod
    def encode(cls, rows, dtype):
        layers = paddle.static.nn.sequence_lod
        conv = lambda width, act: layers.sequence_conv(rows, 5, filter_size=width, act=act)
        return paddle.concat([layers.sequence_pool(conv(3, "tanh"), "max"),
                              layers.sequence_pool(conv(4, "sigmoid"), "sum")], axis=1)


class Looping:
    """A cell that a while repeats as often as a feed says, and fully connected layers around it."""

    BATCH, WIDTH, CLASSES, TURNS = 4, 5, 3, 3

    @classmethod
    def build(cls, dtype):
        x = paddle.static.data("x", [cls.BATCH, cls.WIDTH], dtype)
        label = paddle.static.data("label", [cls.BATCH, 1], "int64")
        hidden = cls.compute(paddle.static.nn.fc(x, cls.WIDTH, activation="tanh"), dtype)
        logits = paddle.static.nn.fc(hidden, cls.CLASSES)
        return paddle.mean(functional.softmax_with_cross_entropy(logits, label)), []

    @classmethod
    def compute(cls, x, dtype):
        turns = paddle.static.data("turns", [1], "int64")
        weight = paddle.create_parameter([cls.WIDTH, cls.WIDTH], dtype)
        go_on = lambda i, h: i < turns
        turn = lambda i, h: [i + 1, paddle.tanh(paddle.matmul(h, weight) + 0.5 * x)]
        return paddle.static.nn.while_loop(go_on, turn, [paddle.full([1], 0, "int64"), x])[1]

    @classmethod
    def feed(cls, dtype):
        draw = np.random.RandomState(1)
        return {"x": draw.uniform(-1, 1, (cls.BATCH, cls.WIDTH)).astype(dtype),
                "label": draw.randint(0, cls.CLASSES, (cls.BATCH, 1)), **cls.choices()}

    @classmethod
    def choices(cls):
        return {"turns": np.array([cls.TURNS])}


class Branching(Looping):
    """One of two branches, each with parameters of its own."""

    FLAG = True

    @classmethod
    def compute(cls, x, dtype):
        flag = paddle.static.data("flag", [1], "bool")
        left = lambda: paddle.tanh(paddle.static.nn.fc(x, cls.WIDTH))
        right = lambda: functional.sigmoid(paddle.static.nn.fc(x, cls.WIDTH)) * x
        return paddle.static.nn.cond(flag, left, right)

    @classmethod
    def choices(cls):
        return {"flag": np.array([cls.FLAG])}


class OtherBranch(Branching):
    FLAG = False


class NestedBranches(Branching):
    """A branch in a branch."""

    @classmethod
    def compute(cls, x, dtype):
        flag = paddle.static.data("flag", [1], "bool")
        dense = lambda: paddle.static.nn.fc(x, cls.WIDTH)
        small = paddle.mean(x) < 0.3
        inner = lambda: paddle.static.nn.cond(small, lambda: paddle.tanh(dense()), lambda: dense() * x)
        return paddle.static.nn.cond(flag, lambda: inner() + x, lambda: functional.sigmoid(dense()))


class Contracted(Looping):
    """Attention of einsums: of two operands, of three (which PaddlePaddle makes two ops of), of a diagonal."""

    @classmethod
    def compute(cls, x, dtype):
        weight = paddle.create_parameter([cls.WIDTH, 2, 3], dtype)
        mixing = paddle.create_parameter([3, cls.WIDTH], dtype)
        heads = paddle.einsum("bi, ihd", x, weight)
        scores = paddle.einsum("...dh, ...dk -> ...hk", heads, heads)
        mixed = paddle.einsum("bhk, bdk, de -> bhe", functional.softmax(scores), heads, mixing)
        sizes = paddle.einsum("bhh -> bh", scores)
        return paddle.einsum("bhe, bh -> be", mixed, sizes)

    @classmethod
    def choices(cls):
        return {}


class Normalized:
    """A convolution and instance_norm, whose statistics PaddlePaddle declares with the dim -1 * 8."""

    BATCH, CHANNELS, CLASSES = 4, 8, 3

    @classmethod
    def build(cls, dtype):
        image = paddle.static.data("image", [-1, 1, 6, 6], dtype)
        label = paddle.static.data("label", [-1, 1], "int64")
        hidden = paddle.static.nn.conv2d(image, cls.CHANNELS, 3, padding=1, bias_attr=False)
        hidden = functional.relu(nn.InstanceNorm2D(cls.CHANNELS)(hidden))
        # The gradient of an average over 9 numbers would be wrong in float64: PaddlePaddle's 1 / 9 is float32.
        logits = paddle.static.nn.fc(functional.avg_pool2d(hidden, 2, 2), cls.CLASSES)
        return paddle.mean(functional.softmax_with_cross_entropy(logits, label)), []

    @classmethod
    def feed(cls, dtype):
        draw = np.random.RandomState(1)
        return {"image": draw.uniform(-1, 1, (cls.BATCH, 1, 6, 6)).astype(dtype),
                "label": draw.randint(0, cls.CLASSES, (cls.BATCH, 1))}


class Dense(Looping):
    """Fully connected layers alone."""

    @classmethod
    def compute(cls, x, dtype):
        return x

    @classmethod
    def choices(cls):
        return {}


class Mixed:
    """What mixed precision casts, and what it leaves: lookups, products, a norm, means and a loss."""

    DTYPES = ("float32",)
    BATCH, LENGTH, WORDS, WIDTH, CLASSES = 4, 6, 20, 8, 5

    @classmethod
    def build(cls, dtype):
        words = paddle.static.data("words", [-1, cls.LENGTH], "int64")
        x = paddle.static.data("x", [-1, cls.WIDTH], dtype)
        label = paddle.static.data("label", [-1, 1], "int64")
        mean = paddle.mean(paddle.static.nn.embedding(words, [cls.WORDS, cls.WIDTH]), axis=1)
        hidden = paddle.static.nn.fc(x, 16, activation="relu")
        hidden = nn.LayerNorm(16)(hidden)
        hidden = paddle.static.nn.fc(paddle.concat([hidden, mean], axis=1), 16, activation="tanh")
        logits = paddle.static.nn.fc(hidden, cls.CLASSES)
        return paddle.mean(functional.softmax_with_cross_entropy(logits, label)), []

    @classmethod
    def feed(cls, dtype):
        draw = np.random.RandomState(3)
        return {"words": draw.randint(0, cls.WORDS, (cls.BATCH, cls.LENGTH)),
                "x": draw.randn(cls.BATCH, cls.WIDTH).astype(dtype),
                "label": draw.randint(0, cls.CLASSES, (cls.BATCH, 1))}


class Recurrent:
    """nn.LSTM, nn.GRU and nn.SimpleRNN: coalesce_tensor in the startup program, fill_any_like for the gradients of
    last states that nothing reads, and states of zeros whose shape comes from that of the batch (ShapeTensorList)."""

    BATCH, LENGTH, WIDTH, SIZE, CLASSES = 4, 5, 4, 3, 3

    @classmethod
    def build(cls, dtype):
        x = paddle.static.data("x", [-1, cls.LENGTH, cls.WIDTH], dtype)
        label = paddle.static.data("label", [-1, 1], "int64")
        both, width = {"direction": "bidirect"}, cls.SIZE
        hidden = nn.LSTM(cls.WIDTH, width, **both)(x)[0]
        hidden = nn.GRU(2 * width, width, num_layers=2)(hidden)[0]
        hidden = nn.SimpleRNN(width, width, **both)(hidden)[0]
        logits = paddle.static.nn.fc(paddle.mean(hidden, axis=1), cls.CLASSES)
        return paddle.mean(functional.softmax_with_cross_entropy(logits, label)), []

    @classmethod
    def feed(cls, dtype):
        draw = np.random.RandomState(1)
        return {"x": draw.uniform(-1, 1, (cls.BATCH, cls.LENGTH, cls.WIDTH)).astype(dtype),
                "label": draw.randint(0, cls.CLASSES, (cls.BATCH, 1))}


# ---- optimizers


def momentum():
    return optimizers.Momentum(0.01, 0.9, weight_decay=paddle.regularizer.L2Decay(1e-4))


def clipped_adam():
    # With an epsilon of 1e-8, a gradient that is only rounding of float32 would move its parameter by a whole step.
    return optimizers.Adam(1e-3, epsilon=1e-5, grad_clip=nn.ClipGradByGlobalNorm(1.0))


def sgd():
    return optimizers.SGD(0.01)


def clipped_adamw():
    return optimizers.AdamW(1e-2, epsilon=1e-5, weight_decay=0.01, grad_clip=nn.ClipGradByGlobalNorm(1.0),
                            apply_decay_param_fun=lambda name: ".w_" in name)


def adagrad():
    return optimizers.Adagrad(0.1)


def adam():
    return optimizers.Adam(1e-2, epsilon=1e-5)


def merged_adam():
    """Updates in a block of their own, which PaddlePaddle says is its own forward block, after every fourth step."""
    return paddle.incubate.optimizer.GradientMergeOptimizer(adam(), k_steps=4, avg=True)


def bfloat16_adam():
    """Casts (O1) in bfloat16. PaddlePaddle's CPU has no gradient of layer_norm in it."""
    lists = amp.bf16.AutoMixedPrecisionListsBF16(custom_fp32_list={"layer_norm"})
    return amp.bf16.decorate_bf16(adam(), amp_lists=lists, use_pure_bf16=False)


def plain_momentum():
    return optimizers.Momentum(0.1, 0.9, multi_precision=True)


def mixed_momentum(level, dtype, **options):
    """Casts (O1) or parameters with master weights (O2), as PaddlePaddle writes them for a GPU."""
    def make():
        # The lists of what to cast leave out what a GPU lacks here, which is everything.
        amp.fp16_lists._get_sys_unsupported_list = lambda dtype: ("GPU", set(), set())
        return amp.decorate(plain_momentum(), level=level, dtype=dtype, **options)
    return make


SCALED = {"init_loss_scaling": 1024.0, "use_dynamic_loss_scaling": True}


def rmsprop():
    return optimizers.RMSProp(1e-2, epsilon=1e-4, momentum=0.5)


def centered_rmsprop():
    return optimizers.RMSProp(1e-2, epsilon=1e-2, centered=True)


def lars():
    return paddle.incubate.optimizer.LarsMomentumOptimizer(1.0, 0.9, lars_coeff=0.02, lars_weight_decay=1e-3)


def lamb():
    return optimizers.Lamb(1e-2, lamb_weight_decay=0.01)


# By name: network and optimizer.
PROGRAMS = {
    "momentum": (Images, momentum),
    "clipped_adam": (Images, clipped_adam),
    "sgd": (Images, sgd),
    "encoder_adamw": (Encoder, clipped_adamw),
    "encoder_lars": (Encoder, lars),
    "encoder_lamb": (Encoder, lamb),
    "word2vec_adagrad": (Word2Vec, adagrad),
    "word2vec_sparse_adagrad": (SparseWord2Vec, adagrad),
    "word2vec_lars": (Word2Vec, lars),
    "word2vec_lamb": (Word2Vec, lamb),
    "lstm_adam": (LstmTexts, adam),
    "lstm_rmsprop": (LstmTexts, rmsprop),
    "gru_adam": (GruTexts, adam),
    "gru_rmsprop": (GruTexts, centered_rmsprop),
    "sequence_conv_adam": (CnnTexts, adam),
    "sequence_conv_rmsprop": (CnnTexts, rmsprop),
    "while_adam": (Looping, adam),
    "cond_adam": (Branching, adam),
    "other_cond_adam": (OtherBranch, adam),
    "nested_cond_momentum": (NestedBranches, momentum),
    "instance_norm_momentum": (Normalized, momentum),
    "gradient_merge_adam": (Dense, merged_adam),
    "recurrent_momentum": (Recurrent, momentum),
    "einsum_momentum": (Contracted, momentum),
}


# Programs that a test keeps, by the name of their folder.
FIXTURES = {"paddle_encoder": PROGRAMS["encoder_adamw"], "paddle_encoder_dropout": (DropoutEncoder, clipped_adamw),
            "paddle_lstm": PROGRAMS["lstm_adam"], "paddle_gru": PROGRAMS["gru_rmsprop"],
            "paddle_while": PROGRAMS["while_adam"], "paddle_nested_cond": PROGRAMS["nested_cond_momentum"],
            "paddle_instance_norm": PROGRAMS["instance_norm_momentum"],
            "paddle_gradient_merge": PROGRAMS["gradient_merge_adam"],
            "paddle_recurrent": PROGRAMS["recurrent_momentum"],
            "paddle_einsum": PROGRAMS["einsum_momentum"],
            # Not among PROGRAMS: a CPU that cuts bits off has losses beyond the bounds of compare_with_paddle.py.
            "paddle_amp_bfloat16": (Mixed, bfloat16_adam),
            "paddle_amp_bfloat16_o2": (Mixed, mixed_momentum("O2", "bfloat16")),
            "paddle_amp_float16": (Mixed, mixed_momentum("O2", "float16", **SCALED)),
            "paddle_amp_float16_o1": (Mixed, mixed_momentum("O1", "float16", **SCALED))}
# Those whose losses aren't their own: dropout makes them random, so that there are none; or PaddlePaddle's CPU can't run
# the program, so that they are those of the training in float32 by this optimizer.
LOSSES_OF = {"paddle_encoder_dropout": None, "paddle_amp_bfloat16_o2": plain_momentum,
             "paddle_amp_float16": plain_momentum, "paddle_amp_float16_o1": plain_momentum}


def build(dtype, network, make_optimizer):
    """(main program, startup program, names of the loss and of what else is watched)."""
    main, startup = paddle.static.Program(), paddle.static.Program()
    startup.random_seed = 1
    paddle.set_default_dtype(dtype)
    with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
        loss, others = network.build(dtype)
        make_optimizer().minimize(loss)
    return main, startup, [loss.name] + [other.name for other in others]


def write_program(path, program, with_call_stacks=True):
    if not with_call_stacks:
        for op in (op for block in program.blocks for op in block.ops):
            op.desc.remove_attr("op_callstack")
    with open(path, "wb") as f:
        f.write(program.desc.serialize_to_string())


def fused_names(startup):
    """What coalesce_tensor makes of parameters. In PaddlePaddle the parameters lie there, and change it; in Skiff it is
    a copy of what they were at first. Only kernels of CUDA read it."""
    return [name for op in startup.global_block().ops if op.type == "coalesce_tensor"
            for name in op.output("FusedOutput")]


def to_bfloat16(array):
    """The bits, of uint16, since NumPy lacks bfloat16."""
    bits = array.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def as_declared(main, arrays):
    """With arrays of float32 rounded where the program says that the variable is half, as PaddlePaddle's amp_init does."""
    rounding = {paddle.float16: lambda array: array.astype(np.float16), paddle.bfloat16: to_bfloat16}
    dtype_of = lambda name: main.global_block().var(name).dtype
    return {name: rounding[dtype_of(name)](array) if array.dtype == np.float32 and dtype_of(name) in rounding else array
            for name, array in arrays.items()}


def write_arrays(path, arrays):
    """To <path>.npz or, if one is of bfloat16, to <path>.safetensors."""
    if all(array.dtype != np.uint16 for array in arrays.values()):
        np.savez_compressed(path + ".npz", **arrays)
        return
    names = {"uint16": "BF16", "float32": "F32"}
    header, data = {}, b""
    for name, array in arrays.items():
        header[name] = {"dtype": names[array.dtype.name], "shape": array.shape,
                        "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".safetensors", "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + data)


def train(session, main, feed, watched):
    """The numbers of each step by name."""
    series = [session.run(main, feed, watched) for _ in range(STEPS)]
    return {name: np.array([float(values[name]) for values in series]) for name in watched}


def write(folder, dtype, network, make_optimizer):
    """Writes and trains one program; the description of it."""
    os.makedirs(folder, exist_ok=True)
    at = lambda name: os.path.join(folder, name)
    main, startup, watched = build(dtype, network, make_optimizer)
    write_program(at("main.pb"), main)
    write_program(at("startup.pb"), startup)
    session = Session()
    session.run(startup)
    kept = [v.name for v in main.list_vars() if v.persistable and session.get(v.name) is not None]
    np.savez(at("params.npz"), **{name: session.get(name) for name in kept})
    feed = network.feed(dtype)
    np.savez(at("feed.npz"), **feed)
    np.savez(at("paddle.npz"), **train(session, main, feed, watched))
    np.savez(at("paddle_params.npz"), **{name: session.get(name) for name in kept})
    return {"name": os.path.basename(folder), "dtype": dtype, "steps": STEPS, "watched": watched,
            "fused": fused_names(startup)}


def write_fixture(folder, network, make_optimizer, losses_of):
    """Writes one small program, what it starts from, and the losses by the optimizer losses_of, if there is one."""
    os.makedirs(folder, exist_ok=True)
    at = lambda name: os.path.join(folder, name)
    main, startup, (loss,) = build("float32", network, make_optimizer)
    write_program(at("main.pb"), main, with_call_stacks=False)
    if issubclass(network, Recurrent):
        write_program(at("startup.pb"), startup, with_call_stacks=False)
    session = Session()
    session.run(startup)
    persistables = {v.name: session.get(v.name) for v in main.list_vars() if v.persistable}
    write_arrays(at("params"), as_declared(main, persistables))
    feed = network.feed("float32")
    np.savez_compressed(at("feed.npz"), **feed)
    if losses_of is None:
        return
    if losses_of is not make_optimizer:
        main, startup, (loss,) = build("float32", network, losses_of)
        session.run(startup)
    np.savez_compressed(at("losses.npz"), **train(session, main, feed, [loss]))


def job(folder, description):
    at = lambda name: os.path.join(folder, name)
    return {"program": at("main.pb"), "startup": at("startup.pb"), "params": at("params.npz"), "feed": at("feed.npz"),
            "fetch": ",".join(description["watched"]), "steps": STEPS, "out": at("skiff.npz"),
            "save_params": at("skiff_params.npz")}


def main(root):
    descriptions, jobs = [], []
    for name, (network, make_optimizer) in PROGRAMS.items():
        for dtype in getattr(network, "DTYPES", ("float64", "float32")):
            folder = os.path.join(root, "%s_%s" % (name, dtype))
            descriptions.append(write(folder, dtype, network, make_optimizer))
            jobs.append(job(folder, descriptions[-1]))
    with open(os.path.join(root, "programs.json"), "w", encoding="utf-8") as f:
        json.dump(descriptions, f, indent=1)
    with open(os.path.join(root, "skiff_jobs.jsonl"), "w", encoding="utf-8") as f:
        f.writelines(json.dumps(line) + "\n" for line in jobs)
    print("%d programs of PaddlePaddle's written to %s" % (len(jobs), root))


if __name__ == "__main__":
    if sys.argv[2:] == ["--fixture"]:
        for name, (network, make_optimizer) in FIXTURES.items():
            losses_of = LOSSES_OF.get(name, make_optimizer)
            write_fixture(os.path.join(sys.argv[1], name), network, make_optimizer, losses_of)
    else:
        main(sys.argv[1])
