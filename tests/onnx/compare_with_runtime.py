"""Runs files of ONNX in Skiff and in ONNX Runtime on the same random inputs, and compares the outputs.

Beside the project: it needs the packages onnx and onnxruntime from PyPI.

usage: compare_with_runtime.py RUNNER FILE... [--shape INPUT=1,3,48,320]... [--value INPUT=16000]...
                               [--tolerance 1e-5]

RUNNER is the program //tests/onnx:onnx_node_runner. Inputs are uniform in [0, 1), whole ones 0 to 9,
bools random, all from a fixed seed. A dim that the file leaves open is 1 if it is the first, else 64 in
images and 32 elsewhere. A file that is refused so is imported for the dims of these inputs alone. --shape and --value say what all inputs of a name have instead. Prints a line
of a table for each file; the difference is relative to the largest number of an output.
"""
import argparse
import os
import sys
import tempfile

import numpy
import onnx
import onnxruntime

from node_conformance import run_model


def shape_of(value, shapes):
    if value.name in shapes:
        return shapes[value.name]
    dims = value.type.tensor_type.shape.dim
    fallback = 64 if len(dims) == 4 else 32
    return [d.dim_value if d.dim_value > 0 else (1 if i == 0 else fallback) for i, d in enumerate(dims)]


def array_of(value, shapes, values, random):
    dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
    shape = shape_of(value, shapes)
    if value.name in values:
        return numpy.full(shape, values[value.name], dtype)
    if dtype.kind == "O":
        return numpy.full(shape, "text", dtype)
    if dtype.kind == "f":
        return random.random(shape).astype(dtype)
    return random.integers(0, 2 if dtype == bool else 10, shape).astype(dtype)


def relative_difference(expected, found):
    """Infinite for another shape or dtype."""
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return numpy.inf
    if expected.size == 0:
        return 0.0
    if not numpy.array_equal(numpy.isfinite(expected), numpy.isfinite(found)):
        return numpy.inf
    finite = numpy.isfinite(expected)
    distance = numpy.abs(expected[finite].astype("float64") - found[finite]).max(initial=0)
    return distance / max(1.0, numpy.abs(expected[finite]).max(initial=0))


def named(settings, convert):
    """The settings NAME=TEXT as a dict, converted."""
    return {name: convert(text) for name, text in (setting.split("=", 1) for setting in settings)}


def compare(runner, path, shapes, values):
    """(what the inputs were, why nothing was compared or "", the difference of the outputs)."""
    model = onnx.load(path)
    initializers = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in initializers]
    random = numpy.random.default_rng(0)
    arrays = [array_of(value, shapes, values, random) for value in inputs]
    described = ", ".join("x".join(map(str, array.shape)) or "scalar" for array in arrays)
    if any(array.dtype.kind == "O" for array in arrays):
        return described, "an input is of strings", None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        expected = session.run(None, {value.name: array for value, array in zip(inputs, arrays)})
    except Exception as error:  # of any type, by the runtime
        return described, "the runtime: " + str(error).splitlines()[0][:120], None
    with tempfile.TemporaryDirectory() as folder:
        status, reason, found = run_model(runner, model, arrays, folder)
        if status != 0:
            described += " (imported for these dims alone)"
            status, reason, found = run_model(runner, model, arrays, folder, "--feed_dims")
    if status != 0:
        return described, "; ".join(reason.splitlines()[1:3] or [reason])[:200], None
    return described, "", max(map(relative_difference, expected, found), default=0.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runner")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--shape", action="append", default=[])
    parser.add_argument("--value", action="append", default=[])
    parser.add_argument("--tolerance", type=float, default=1e-5)
    options = parser.parse_args()
    shapes = named(options.shape, lambda text: [int(dim) for dim in text.split(",") if dim])
    values = named(options.value, float)
    print("| file | inputs | largest difference |\n|---|---|---|")
    is_same = True
    for path in options.files:
        inputs, problem, difference = compare(options.runner, path, shapes, values)
        is_same = is_same and (difference is None or difference <= options.tolerance)
        print("| %s | %s | %s |" % (os.path.basename(path), inputs, problem or "%.1e" % difference), flush=True)
    sys.exit(0 if is_same else 1)


if __name__ == "__main__":
    main()
