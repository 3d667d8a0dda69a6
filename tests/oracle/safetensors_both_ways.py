#!/usr/bin/env python3
"""Exchanges tensors between the Python package skiff, the library of safetensors and PyTorch, in both directions.

usage: PYTHONPATH=FOLDER_OF_SKIFF safetensors_both_ways.py

Files: every dtype that both sides have, bfloat16 included, matrices, scalars, tensors without elements, metadata.
Memory: DLPack from skiff to PyTorch, and tensors of PyTorch as feeds. Everything must come back bit for bit.

Exit status: 0, 1 if something differs, 2 if it can't be checked. Needs numpy<2, torch, safetensors, and the Python that
skiff is built for.
"""
import os
import sys
import tempfile
import unittest

try:
    import numpy
    import safetensors.numpy
    import safetensors.torch
    import skiff
    import torch
except ImportError as error:
    print("%s can't do it (%s); give an interpreter with numpy, torch, safetensors and skiff" % (sys.executable, error),
          file=sys.stderr)
    sys.exit(2)

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
SHAPES = {"matrix": (3, 5), "scalar": (), "empty": (0, 4), "empty columns": (4, 0), "odd": (7,)}
METADATA = {"format": "pt", "made by": "an outside check", "ключ": "значение \U0001f6f6", "nothing": ""}


def made_arrays():
    """Arrays of all dtypes and shapes by name. Floats have NaN and infinities among them."""
    arrays = {}
    for dtype in DTYPES:
        for name, shape in SHAPES.items():
            numbers = numpy.arange(-3, numpy.prod(shape, dtype=int) - 3)
            if dtype.startswith("float"):
                numbers = numpy.where(numbers == -2, numpy.nan, numpy.where(numbers == -1, -numpy.inf, numbers / 3))
            elif dtype in ("bool", "uint8"):
                numbers = numbers % 2 if dtype == "bool" else numbers % 256
            arrays["%s %s" % (dtype, name)] = numbers.astype(dtype).reshape(shape)
    return arrays


def made_bits():
    """The bits of arrays of bfloat16 by name: zeros, numbers, infinities, NaN."""
    bits = numpy.array([0x0000, 0x8000, 0x3F80, 0xC049, 0x7F80, 0xFF80, 0x7FC1, 0x0001], "uint16")
    return {"bfloat16 " + name: numpy.resize(bits, shape) for name, shape in SHAPES.items()}


def torch_of_bits(bits):
    return torch.from_numpy(bits.view("int16").copy()).view(torch.bfloat16)


def bits_of_torch(tensor):
    return tensor.contiguous().view(torch.int16).numpy().view("uint16")


def identity(dtype, dims):
    """A compiled program whose y is its x."""
    main = skiff.Program()
    with skiff.program_guard(main, skiff.Program()):
        y = skiff.layers.assign(skiff.layers.data("x", dims, dtype))
    return skiff.Executor().compile(main), y


class Case(unittest.TestCase):
    def assert_bits(self, found, expected, name):
        """Equal shapes, dtypes and bytes."""
        self.assertEqual((found.dtype, found.shape), (expected.dtype, expected.shape), name)
        self.assertEqual(found.tobytes(), expected.tobytes(), name)


class Files(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "a.safetensors")

    def write_in_skiff(self):
        skiff.write_safetensors(self.path, {**made_arrays(), **{
            name: skiff.Tensor(bits, "bfloat16") for name, bits in made_bits().items()}}, METADATA)

    def assert_skiff_reads(self, arrays, bits=None):
        for mmap in (False, True):
            read = skiff.read_safetensors(self.path, mmap=mmap)
            self.assertEqual(set(read), {*arrays, *(bits or {})})
            for name, array in arrays.items():
                self.assertEqual(read[name].dtype, str(array.dtype))
                self.assert_bits(read[name].numpy(), array, name)
            for name, array in (bits or {}).items():
                self.assertEqual(read[name].dtype, "bfloat16")
                self.assert_bits(read[name].numpy(), array, name)
        self.assertEqual(skiff.read_safetensors_metadata(self.path), METADATA)

    def test_from_skiff_to_numpy(self):
        arrays = made_arrays()
        skiff.write_safetensors(self.path, arrays, METADATA)
        read = safetensors.numpy.load_file(self.path)
        self.assertEqual(set(read), set(arrays))
        for name, array in arrays.items():
            self.assert_bits(read[name], array, name)

    def test_from_skiff_to_torch(self):
        self.write_in_skiff()
        read = safetensors.torch.load_file(self.path)
        for name, array in made_arrays().items():
            self.assert_bits(read.pop(name).numpy(), array, name)
        for name, bits in made_bits().items():
            self.assertEqual(read[name].dtype, torch.bfloat16)
            self.assert_bits(bits_of_torch(read.pop(name)), bits, name)
        self.assertEqual(read, {})

    def test_metadata_from_skiff(self):
        self.write_in_skiff()
        with safetensors.safe_open(self.path, "pt") as opened:
            self.assertEqual(opened.metadata(), METADATA)
        skiff.write_safetensors(self.path, {"a": numpy.zeros(2)})
        with safetensors.safe_open(self.path, "pt") as opened:
            self.assertIn(opened.metadata(), (None, {}))

    def test_from_numpy_to_skiff(self):
        safetensors.numpy.save_file(made_arrays(), self.path, METADATA)
        self.assert_skiff_reads(made_arrays())

    def test_from_torch_to_skiff(self):
        tensors = {name: torch.from_numpy(array.copy()) for name, array in made_arrays().items()}
        tensors.update({name: torch_of_bits(bits) for name, bits in made_bits().items()})
        safetensors.torch.save_file(tensors, self.path, METADATA)
        self.assert_skiff_reads(made_arrays(), made_bits())


class Memory(Case):
    def test_of_skiff_in_torch(self):
        for name, array in made_arrays().items():
            tensor = skiff.Tensor(array)
            taken = torch.from_dlpack(tensor)
            self.assert_bits(taken.numpy(), array, name)
            if array.size > 0:
                self.assertEqual(taken.data_ptr(), array.ctypes.data, name)
        for name, bits in made_bits().items():
            taken = torch.from_dlpack(skiff.Tensor(bits, "bfloat16"))
            self.assertEqual(taken.dtype, torch.bfloat16)
            self.assert_bits(bits_of_torch(taken), bits, name)

    def test_of_skiff_lives_as_long_as_torch_has_it(self):
        step, y = identity("float32", [-1, 2])
        result, = step.run({"x": numpy.ones((2, 2), "float32")}, [y], return_tensors=True)
        taken = torch.from_dlpack(result)
        del step, result
        taken += 1
        self.assertEqual(taken.tolist(), [[2, 2], [2, 2]])

    def test_of_torch_in_skiff(self):
        for name, array in made_arrays().items():
            given = torch.from_numpy(array.copy())
            tensor = skiff.Tensor(given)
            self.assert_bits(tensor.numpy(), array, name)
            if array.size > 0:
                self.assertEqual(tensor.numpy().ctypes.data, given.data_ptr(), name)
        for name, bits in made_bits().items():
            tensor = skiff.Tensor(torch_of_bits(bits))
            self.assertEqual(tensor.dtype, "bfloat16")
            self.assert_bits(tensor.numpy(), bits, name)

    def test_of_torch_as_feeds(self):
        for name, array in made_arrays().items():
            step, y = identity(str(array.dtype), [-1] * array.ndim)
            self.assert_bits(step.run({"x": torch.from_numpy(array.copy())}, [y])[0], array, name)
        bits = made_bits()["bfloat16 matrix"]
        step, y = identity("bfloat16", [-1, -1])
        result, = step.run({"x": torch_of_bits(bits)}, [y], return_tensors=True)
        self.assert_bits(bits_of_torch(torch.from_dlpack(result)), bits, "bfloat16")

    def test_of_torch_is_read_in_place_or_copied(self):
        step, y = identity("float32", [-1, 2])
        given = torch.ones(3, 2)
        bound = step.bind({"x": given}, [y])
        given += 1
        bound.step()
        numpy.testing.assert_array_equal(bound.fetch(), numpy.full((3, 2), 2))
        strided = torch.arange(6.0).reshape(2, 3).T
        numpy.testing.assert_array_equal(step.run({"x": strided}, [y])[0], strided.numpy())
        with self.assertRaisesRegex(skiff.InvalidArgumentError, "isn't contiguous"):
            step.bind({"x": strided}, [y])

    def test_of_parameters_must_be_detached(self):
        step, y = identity("float32", [-1, 2])
        parameter = torch.nn.Parameter(torch.ones(3, 2))
        with self.assertRaisesRegex((RuntimeError, BufferError), "require"):
            step.run({"x": parameter}, [y])
        numpy.testing.assert_array_equal(step.run({"x": parameter.detach()}, [y])[0], numpy.ones((3, 2)))


if __name__ == "__main__":
    print("torch %s, safetensors %s, numpy %s" % (torch.__version__, safetensors.__version__, numpy.__version__))
    unittest.main(verbosity=2)
