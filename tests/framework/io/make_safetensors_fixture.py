#!/usr/bin/env python3
"""Writes safetensors_fixture.safetensors beside itself, with the format's own library.

It has a tensor of each dtype of Skiff, a scalar, one without elements, and a name that JSON escapes.
safetensors_test.cc reads it, and expects to write the same JSON and elements. Needs ml_dtypes, numpy and safetensors (0.8.0).
"""
import os

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

FLOATS = [1.5, -2, np.inf]


def main():
    tensors = {
        "bool": np.array([True, False], np.bool_),
        "uint8": np.array([200], np.uint8),
        "int8": np.array([[-1, 2]], np.int8),
        "int16": np.array([-300], np.int16),
        "int32": np.array([[1], [-70000]], np.int32),
        "int64": np.array([2**40], np.int64),
        "float16": np.array(FLOATS, np.float16),
        "bfloat16": np.array(FLOATS, ml_dtypes.bfloat16),
        "float32": np.array(FLOATS, np.float32),
        "float64": np.array(FLOATS, np.float64),
        "scalar": np.array(0.25, np.float32),
        "empty": np.zeros([2, 0], np.float32),
        "a \"b\"\\\n/é": np.array([7], np.int8),
    }
    folder = os.path.dirname(os.path.abspath(__file__))
    save_file(tensors, os.path.join(folder, "safetensors_fixture.safetensors"), {"format": "pt"})


if __name__ == "__main__":
    main()
