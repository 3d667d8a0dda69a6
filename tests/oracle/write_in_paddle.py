#!/usr/bin/env python3
"""Writes training programs with PaddlePaddle's own layers and trains them, for Skiff to do the same.

usage: write_in_paddle.py DIR

DIR/<name>/ then holds main.pb, startup.pb, params.npz (all persistable variables after the startup
program), feed.npz, and paddle.npz with the losses of 20 steps; DIR/programs.json lists the programs,
and DIR/skiff_jobs.jsonl is for tools/run_program. compare_with_paddle.py compares (run.sh does all).
Needs numpy and paddlepaddle==2.6.2 in the interpreter that runs it.
"""
import json
import os
import sys

if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
    print(__doc__)
    sys.exit(0 if sys.argv[1:] == ["--help"] else 2)

import numpy as np

from paddle_oracle import Session, paddle

STEPS = 20
BATCH = 16


def momentum():
    return paddle.optimizer.Momentum(0.01, 0.9, weight_decay=paddle.regularizer.L2Decay(1e-4))


def clipped_adam():
    # With the epsilon of 1e-8, a gradient that is zero but for float32's rounding moves its parameter by a whole step.
    return paddle.optimizer.Adam(1e-3, epsilon=1e-5, grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0))


def sgd():
    return paddle.optimizer.SGD(0.01)


OPTIMIZERS = {"momentum": momentum, "clipped_adam": clipped_adam, "sgd": sgd}


def network(image):
    """Convolutions, batch normalization, both poolings and fully connected layers."""
    static, functional = paddle.static.nn, paddle.nn.functional
    # No bias before a normalization: its gradient is zero but for rounding, and so is all that follows from it.
    hidden = functional.relu(static.batch_norm(static.conv2d(image, 6, 5, padding=2, bias_attr=False)))
    hidden = functional.max_pool2d(hidden, 2, 2)
    hidden = static.conv2d(hidden, 16, 5, act="relu")
    hidden = functional.avg_pool2d(hidden, 2, 2)
    hidden = static.fc(hidden, 84, activation="tanh")
    return static.fc(hidden, 10)


def build(dtype, make_optimizer):
    """(main program, startup program, names of loss and accuracy)."""
    main, startup = paddle.static.Program(), paddle.static.Program()
    startup.random_seed = 1
    paddle.set_default_dtype(dtype)
    with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
        image = paddle.static.data("image", [-1, 1, 28, 28], dtype)
        label = paddle.static.data("label", [-1, 1], "int64")
        logits = network(image)
        loss = paddle.mean(paddle.nn.functional.softmax_with_cross_entropy(logits, label))
        accuracy = paddle.static.accuracy(paddle.nn.functional.softmax(logits), label)
        make_optimizer().minimize(loss)
    return main, startup, (loss.name, accuracy.name)


def batch(dtype):
    draw = np.random.RandomState(1)
    return {"image": draw.uniform(-2, 2, (BATCH, 1, 28, 28)).astype(dtype), "label": draw.randint(0, 10, (BATCH, 1))}


def write(folder, dtype, make_optimizer):
    """Writes and trains one program; the description of it."""
    os.makedirs(folder, exist_ok=True)
    at = lambda name: os.path.join(folder, name)
    main, startup, watched = build(dtype, make_optimizer)
    for name, program in (("main.pb", main), ("startup.pb", startup)):
        with open(at(name), "wb") as f:
            f.write(program.desc.serialize_to_string())
    session = Session()
    session.run(startup)
    kept = [v.name for v in main.list_vars() if v.persistable and session.get(v.name) is not None]
    np.savez(at("params.npz"), **{name: session.get(name) for name in kept})
    feed = batch(dtype)
    np.savez(at("feed.npz"), **feed)
    series = [session.run(main, feed, watched) for _ in range(STEPS)]
    np.savez(at("paddle.npz"), **{name: np.array([float(values[name]) for values in series]) for name in watched})
    np.savez(at("paddle_params.npz"), **{name: session.get(name) for name in kept})
    return {"name": os.path.basename(folder), "dtype": dtype, "steps": STEPS, "watched": watched}


def job(folder, description):
    at = lambda name: os.path.join(folder, name)
    return {"program": at("main.pb"), "startup": at("startup.pb"), "params": at("params.npz"), "feed": at("feed.npz"),
            "fetch": ",".join(description["watched"]), "steps": STEPS, "out": at("skiff.npz"),
            "save_params": at("skiff_params.npz")}


def main(root):
    descriptions, jobs = [], []
    for optimizer, make_optimizer in OPTIMIZERS.items():
        for dtype in ("float64", "float32"):
            folder = os.path.join(root, "%s_%s" % (optimizer, dtype))
            descriptions.append(write(folder, dtype, make_optimizer))
            jobs.append(job(folder, descriptions[-1]))
    with open(os.path.join(root, "programs.json"), "w", encoding="utf-8") as f:
        json.dump(descriptions, f, indent=1)
    with open(os.path.join(root, "skiff_jobs.jsonl"), "w", encoding="utf-8") as f:
        f.writelines(json.dumps(line) + "\n" for line in jobs)
    print("%d programs of PaddlePaddle's written to %s" % (len(jobs), root))


if __name__ == "__main__":
    main(sys.argv[1])
