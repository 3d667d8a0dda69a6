"""Runs the node tests of the onnx package and makes the table of docs/onnx.md.

Beside the project: it needs the package onnx (1.12 or newer) from PyPI.

usage: node_conformance.py RUNNER [--table FILE] [--list FILE] [--only TEXT]

RUNNER is the program //tests/onnx:onnx_node_runner. A case counts if all its tensors are of
float32, float64, int32, int64 or bool and its opset is one of 7 to 24. It passes if the outputs are within the tolerances of the
onnx package; it is refused if the import or the run ends with an Error; else it has failed.

The cases feed what files have as constants: shapes, axes, pads. So a case that is refused is tried
again with all inputs but the first as initializers, then with all whole numbers as initializers.
"""
import argparse
import collections
import os
import subprocess
import sys
import tempfile

import numpy
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

_TYPES = {onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.INT32,
          onnx.TensorProto.INT64, onnx.TensorProto.BOOL}


def value_types(model):
    """The element types of inputs and outputs, None for what is no tensor."""
    for value in list(model.graph.input) + list(model.graph.output):
        yield value.type.tensor_type.elem_type if value.type.HasField("tensor_type") else None


def as_array(value):
    """The numbers of a case, which has some as messages."""
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else numpy.asarray(value)


def op_of(case):
    """The op that a case is about; cases of composed ops count as these."""
    nodes = case.model.graph.node
    if len(nodes) == 1:
        return nodes[0].op_type
    name = case.name[len("test_"):]
    return name.split("_expanded")[0].split("_")[0] + " (composed)" if "_expanded" in name else name.split("_")[0]


def close(expected, found, case):
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return False
    if not numpy.issubdtype(expected.dtype, numpy.floating):
        return numpy.array_equal(expected, found)
    return numpy.allclose(found, expected, rtol=case.rtol, atol=case.atol, equal_nan=True)


def with_initializers(case, arrays, is_initializer):
    """The model with some of its inputs as initializers, and the arrays of the other inputs."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    inputs = list(model.graph.input)
    del model.graph.input[:]
    fed = []
    for i, (value, array) in enumerate(zip(inputs, arrays)):
        if is_initializer(i, array):
            model.graph.initializer.append(numpy_helper.from_array(array, value.name))
        else:
            model.graph.input.append(value)
            fed.append(array)
    return model, fed


_ATTEMPTS = [
    lambda i, array: False,
    lambda i, array: i > 0,
    lambda i, array: array.dtype.kind in "iub",
]


def run_model(runner, model, arrays, folder, *flags):
    """The exit status, the reason, and the outputs."""
    onnx.save(model, os.path.join(folder, "model.onnx"))
    initializers = {tensor.name for tensor in model.graph.initializer}
    inputs = [value.name for value in model.graph.input if value.name not in initializers]
    names = []
    for i, (name, array) in enumerate(zip(inputs, arrays)):
        names.append(os.path.join(folder, "input_%d.pb" % i))
        with open(names[-1], "wb") as out:
            out.write(numpy_helper.from_array(array, name).SerializeToString())
    ran = subprocess.run([runner, *flags, os.path.join(folder, "model.onnx")] + names + [folder],
                         capture_output=True, text=True, errors="replace", timeout=120)
    outputs = []
    for i in range(len(model.graph.output) if ran.returncode == 0 else 0):
        proto = onnx.TensorProto()
        with open(os.path.join(folder, "output_%d.pb" % i), "rb") as data:
            proto.ParseFromString(data.read())
        outputs.append(numpy_helper.to_array(proto))
    return ran.returncode, ran.stderr.strip(), outputs


def run_case(runner, case, folder):
    """"passed", or another result with its reason."""
    for inputs, outputs in case.data_sets:
        inputs = [as_array(value) for value in inputs]
        outputs = [as_array(value) for value in outputs]
        for is_initializer in _ATTEMPTS:
            model, fed = with_initializers(case, inputs, is_initializer)
            status, reason, found = run_model(runner, model, fed, folder)
            if status not in (3, 4):
                break
        if status in (3, 4):
            return "refused", reason
        if status != 0:
            return "failed", "exit status %d: %s" % (status, reason)
        for i, array in enumerate(outputs):
            expected = array
            if not close(expected, found[i], case):
                return "failed", "output %d: %s %s, expected %s %s" % (
                    i, found[i].dtype, found[i].tolist(), expected.dtype, expected.tolist())
    return "passed", ""


def counted_cases(only):
    for case in collect_testcases(None):
        types = list(value_types(case.model))
        version = max((o.version for o in case.model.opset_import if o.domain in ("", "ai.onnx")), default=0)
        if only in case.name and 7 <= version <= 24 and all(kind in _TYPES for kind in types):
            yield case


def write_table(counts, path):
    total = collections.Counter()
    lines = ["| op | passed | refused | failed |", "|---|---|---|---|"]
    for op in sorted(counts):
        total.update(counts[op])
        lines.append("| %s | %s |" % (op, " | ".join(str(counts[op][k] or "") for k in ("passed", "refused", "failed"))))
    lines.append("| all %d | %d | %d | %d |" % (sum(total.values()), total["passed"], total["refused"], total["failed"]))
    if path:
        with open(path, "w", encoding="utf-8") as out:
            out.write("\n".join(lines) + "\n")
    return lines[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runner")
    parser.add_argument("--table")
    parser.add_argument("--list")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    counts = collections.defaultdict(collections.Counter)
    listed = []
    for case in counted_cases(options.only):
        with tempfile.TemporaryDirectory() as folder:
            result, reason = run_case(options.runner, case, folder)
        counts[op_of(case)][result] += 1
        if result != "passed":
            listed.append("%s %s: %s" % (result, case.name, reason[:1500]))
    if options.list:
        with open(options.list, "w", encoding="utf-8") as out:
            out.write("\n".join(listed) + "\n")
    print(write_table(counts, options.table))
    sys.exit(1 if any(line.startswith("failed") for line in listed) else 0)


if __name__ == "__main__":
    main()
