"""Tests checkpoints, inference models, archives and the hash of weights in Python."""
import os
import pathlib
import shutil
import tempfile
import unittest
import warnings
import zipfile

import numpy

from tests.python_stub.interpreter import is_released_by
from tests.python_stub.package import skiff
from tests.python_stub.selected_rows import gradient_of_a_table

layers = skiff.layers


def regression():
    """(main, startup, x, y, loss) of a training."""
    main, startup = skiff.Program(), skiff.Program()
    main.seed = startup.seed = 3
    with skiff.program_guard(main, startup):
        x = layers.data("x", [-1, 4])
        y = layers.fc(x, 2)
        loss = layers.mean(layers.square(y))
        skiff.optimizer.Momentum(learning_rate=0.1).minimize(loss)
    return main, startup, x, y, loss


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.main, startup, self.x, self.y, self.loss = regression()
        self.executor = skiff.Executor()
        self.executor.run(startup)
        self.step = self.executor.compile(self.main)
        self.feed = {"x": numpy.linspace(-1, 1, 8, dtype="float32").reshape(2, 4)}

    def train(self, steps):
        for _ in range(steps):
            self.step.run(self.feed, [self.loss])

    def hash(self):
        return skiff.weights_hash(self.executor.scope, self.executor.scope)

    def test_checkpoints_continue_to_the_same_bits(self):
        self.train(2)
        state = {"epoch": "1", "bytes": b"\0\xff"}
        saved = skiff.save_checkpoint(self.folder, self.main, self.executor.scope, 2, state)
        self.assertTrue(os.path.isdir(saved.path))
        self.assertEqual(saved.removed, [])
        self.train(3)
        expected = self.hash()
        loaded = skiff.load_latest_checkpoint(self.folder, self.main, self.executor.scope)
        self.assertEqual((loaded.path, loaded.step, loaded.state, loaded.refused),
                         (saved.path, 2, {"epoch": b"1", "bytes": b"\0\xff"}, []))
        self.assertNotEqual(self.hash(), expected)
        self.train(3)
        self.assertEqual(self.hash(), expected)

    def test_checkpoints_that_do_not_fit_change_nothing(self):
        with self.assertRaises(skiff.NotFoundError):
            skiff.load_latest_checkpoint(os.path.join(self.folder, "none"), self.main, self.executor.scope)
        skiff.save_checkpoint(self.folder, self.main, self.executor.scope, 0, keep_last=1)
        before = self.hash()
        with self.assertRaises(skiff.InvalidArgumentError):
            skiff.load_latest_checkpoint(self.folder, skiff.Program(), self.executor.scope)
        with self.assertRaises(skiff.InvalidArgumentError):
            skiff.save_checkpoint(self.folder, self.main, self.executor.scope, -1)
        self.assertEqual(self.hash(), before)

    def test_inference_models(self):
        for params_filename in ("__params__", ""):
            with self.subTest(params_filename):
                folder = os.path.join(self.folder, "model" + params_filename)
                skiff.save_inference_model(folder, [self.x], [self.y], self.main, self.executor.scope,
                                           params_filename=params_filename)
                scope = skiff.Scope()
                skiff.load_inference_model(folder, scope, params_filename=params_filename)
                scope = skiff.Scope()
                model = skiff.load_inference_model(folder, scope)
                self.assertEqual((model.feed_names, len(model.fetch_names)), (["x"], 1))
                test = self.executor.compile(self.main.clone_for_test())
                expected, = test.run(self.feed, [self.y])
                result, = skiff.Executor("cpu", scope).compile(model.program).run(self.feed, model.fetch_names)
                numpy.testing.assert_array_equal(result, expected)
        with self.assertRaisesRegex(skiff.NotFoundError, r"looked for __model__ and \*\.pdmodel"):
            skiff.load_inference_model(self.folder, skiff.Scope())

    def test_an_inference_model_of_any_names(self):
        skiff.save_inference_model(self.folder, [self.x], [self.y], self.main, self.executor.scope, params_filename="p")
        for old, new in (("__model__", "net.pdmodel"), ("p", "net.pdiparams")):
            os.rename(os.path.join(self.folder, old), os.path.join(self.folder, new))
        self.assertEqual(skiff.load_inference_model(self.folder, skiff.Scope()).feed_names, ["x"])
        shutil.copyfile(os.path.join(self.folder, "net.pdmodel"), os.path.join(self.folder, "b.pdmodel"))
        with self.assertRaisesRegex(skiff.InvalidArgumentError, "several programs: b.pdmodel, net.pdmodel"):
            skiff.load_inference_model(self.folder, skiff.Scope())
        self.assertEqual(
            skiff.load_inference_model(self.folder, skiff.Scope(), model_filename="net.pdmodel").feed_names, ["x"])

    def test_models_of_onnx(self):
        path = pathlib.Path(self.folder) / "model.onnx"
        skiff.export_onnx(path, [self.x], [self.y], self.main, self.executor.scope, opset=15, graph_name="regression")
        self.assertIn(b"regression", path.read_bytes())
        scope = skiff.Scope()
        model = skiff.import_onnx(path, scope)
        self.assertEqual((model.feed_names, model.fetch_names), (["x"], [self.y.name]))
        self.assertEqual(sorted(scope), sorted(self.main.parameters))
        executor = skiff.Executor("cpu", scope)
        expected, = self.executor.compile(self.main.clone_for_test()).run(self.feed, [self.y])
        numpy.testing.assert_allclose(executor.compile(model.program).run(self.feed, model.fetch_names)[0], expected)

        startup = skiff.Program()
        with skiff.program_guard(model.program, startup):
            loss = layers.mean(layers.square(model.program.block().variable(self.y.name)))
            skiff.optimizer.Sgd(learning_rate=0.1).minimize(loss)
        executor.run(startup)
        step = executor.compile(model.program)
        losses = [step.run(self.feed, [loss])[0] for _ in range(2)]
        self.assertLess(losses[1], losses[0])

    def test_what_onnx_lacks_is_refused(self):
        path = os.path.join(self.folder, "model.onnx")
        with self.assertRaisesRegex(skiff.InvalidArgumentError, "opset.*12.*13 to 24"):
            skiff.export_onnx(path, [self.x], [self.y], self.main, self.executor.scope, opset=12)
        main, startup = skiff.Program(), skiff.Program()
        with skiff.program_guard(main, startup):
            noise = layers.gaussian_random([2, 2])
        with self.assertRaisesRegex(skiff.UnimplementedError, "gaussian_random"):
            skiff.export_onnx(path, [], [noise], main, skiff.Scope())
        self.assertEqual(os.listdir(self.folder), [])
        with open(path, "wb") as stream:
            stream.write(b"no model")
        scope = skiff.Scope()
        with self.assertRaisesRegex(skiff.DataLossError, "model.onnx"):
            skiff.import_onnx(path, scope)
        self.assertEqual(len(scope), 0)

    def test_archives_are_those_of_numpy(self):
        path = os.path.join(self.folder, "a.npz")
        arrays = {"a": numpy.arange(6).reshape(2, 3), "b": numpy.ones(3, "float32")}
        for compress in (False, True):
            skiff.write_npz(path, arrays, compress=compress)
            with numpy.load(path) as loaded:
                self.assertEqual(sorted(loaded), ["a", "b"])
                numpy.testing.assert_array_equal(loaded["a"], arrays["a"])
        numpy.savez(path, **arrays)
        read = skiff.read_npz(path)
        self.assertEqual(sorted(read), ["a", "b"])
        numpy.testing.assert_array_equal(read["b"], arrays["b"])
        with open(path, "wb") as stream:
            stream.write(b"no archive")
        with self.assertRaises(skiff.DataLossError):
            skiff.read_npz(path)
        with self.assertRaises(skiff.NotFoundError):
            skiff.read_npz(path + "x")
        with self.assertRaises(TypeError):
            skiff.read_npz(3)

    def test_headers_of_archives_are_read_as_numpy_reads_them(self):
        path = os.path.join(self.folder, "a.npz")
        usual = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}"
        headers = [usual, usual + " \n", "\t" + usual + "\r\n\n", usual.replace("2", "2L").replace("3", "3L"),
                   usual.replace("'shape'", "u'shape'").replace(", ", ",\n"), usual.replace("False", "True")]
        descrs = ["|f4", "=f4", "f4", "f", "float32", ">f4", ">f", ">i4", "<i", "|b1", "<?", "i2", "e", "float16"]
        headers += [usual.replace("<f4", descr) for descr in descrs]
        for header in headers:
            for filler in ("", " \n"):
                with self.subTest(header + filler):
                    text = (header + filler).encode()
                    item = numpy.dtype(header.split("'")[3]).itemsize
                    with zipfile.ZipFile(path, "w") as archive:
                        archive.writestr("a.npy", b"\x93NUMPY\x01\0" + len(text).to_bytes(2, "little") + text +
                                         (bytes(range(24)) if item > 1 else b"\0\1\1\0\0\1")[:6 * item])
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # NumPy's, of Python 2
                        expected = numpy.load(path)["a"]
                    read = skiff.read_npz(path)["a"]
                    self.assertEqual(read.dtype, expected.dtype.newbyteorder("="))
                    numpy.testing.assert_array_equal(read, expected)

    def test_arrays_are_read_by_their_names(self):
        path = os.path.join(self.folder, "a.npz")
        arrays = {"a": numpy.arange(6, dtype="float32").reshape(2, 3), "texts": numpy.array([b"x", b"y"])}
        numpy.savez(path, **arrays)
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("meta.json", "{}")
        with self.assertRaisesRegex(skiff.DataLossError, "meta.json.*name the arrays to read"):
            skiff.read_npz(path)
        read = skiff.read_npz(path, names=["a"])
        self.assertEqual(list(read), ["a"])
        numpy.testing.assert_array_equal(read["a"], arrays["a"])
        with self.assertRaisesRegex(skiff.UnimplementedError, "S1"):
            skiff.read_npz(path, ["a", "texts"])
        with self.assertRaisesRegex(skiff.NotFoundError, "expected one of a, texts"):
            skiff.read_npz(path, ["b"])
        path = os.path.join(self.folder, "a.safetensors")
        skiff.write_safetensors(path, {"a": numpy.ones(2), "b": numpy.zeros(3)})
        for mmap in (False, True):
            self.assertEqual(list(skiff.read_safetensors(path, mmap, names=["b"])), ["b"])
            self.assertEqual(skiff.read_safetensors(path, mmap, names=[]), {})
        for read in (skiff.read_npz, skiff.read_safetensors):
            for names in (3, "a"):
                with self.assertRaisesRegex(TypeError, "expected several names"):
                    read(path, names=names)

    def test_archives_hold_offsets_as_arrays(self):
        path = os.path.join(self.folder, "a.npz")
        rows, outer, inner = numpy.zeros((3, 2), "float32"), numpy.array([0, 2]), numpy.array([0, 1, 3])
        arrays = {"a": rows, "a.lod0": outer, "a.lod1": inner}
        for written in (arrays, {"a": skiff.Tensor(rows, lod=[[0, 2], [0, 1, 3]])}):
            skiff.write_npz(path, written)
            for read in (skiff.read_npz(path), dict(numpy.load(path))):
                self.assertEqual(sorted(read), sorted(arrays))
                for name, array in arrays.items():
                    numpy.testing.assert_array_equal(read[name], array)
        with self.assertRaisesRegex(skiff.DataLossError, 'LoD level 0 ends at 2: expected 3'):
            skiff.write_npz(path, {"a": rows, "a.lod0": numpy.array([0, 2])})

    def test_paths_are_those_of_the_system(self):
        arrays = {"a": numpy.arange(3)}
        name = b"\xff.npz"  # no UTF-8
        path = os.path.join(os.fsencode(self.folder), name)
        for form in (path, os.fsdecode(path), pathlib.Path(os.fsdecode(path))):
            skiff.write_npz(form, arrays)
            self.assertEqual(os.listdir(os.fsencode(self.folder)), [name])
            numpy.testing.assert_array_equal(skiff.read_npz(form)["a"], arrays["a"])
            os.remove(path)
        saved = skiff.save_checkpoint(path, self.main, self.executor.scope, 1)
        self.assertEqual(os.path.dirname(os.fsencode(saved.path)), path)
        self.assertEqual(skiff.load_latest_checkpoint(path, self.main, self.executor.scope).path, saved.path)

    def test_paths_have_no_nul(self):
        path = os.path.join(self.folder, "a.npz\0.txt")
        for write in (skiff.write_npz, skiff.write_safetensors):
            for form in (path, os.fsencode(path)):
                with self.assertRaisesRegex(ValueError, "a.npz.x00.txt', expected one without a NUL"):
                    write(form, {"a": numpy.zeros(1)})
        for read in (skiff.read_npz, skiff.read_safetensors):
            with self.assertRaisesRegex(ValueError, "NUL"):
                read(path)
        with self.assertRaisesRegex(skiff.InvalidArgumentError, "NUL"):
            skiff.save_inference_model(self.folder, [self.x], [self.y], self.main, self.executor.scope,
                                       params_filename="a\0b")
        self.assertNotIn("a.npz", os.listdir(self.folder))

    def test_names_and_states_of_other_types_are_type_errors(self):
        path = os.path.join(self.folder, "a")
        for write in (skiff.write_npz, skiff.write_safetensors):
            with self.assertRaisesRegex(TypeError, "found 1, expected a text"):
                write(path, {1: numpy.zeros(1)})
        for state, message in (({1: "x"}, "found 1, expected a text"), ({"a": 2.5}, 'state."a".: found 2.5, expected')):
            with self.assertRaisesRegex(TypeError, message):
                skiff.save_checkpoint(self.folder, self.main, self.executor.scope, 0, state)
        self.assertEqual(os.listdir(self.folder), [])

    def test_what_the_formats_lack_is_refused(self):
        path = os.path.join(self.folder, "a")
        ragged = skiff.Tensor(numpy.zeros((3, 2), "float32"), lod=[[0, 1, 3]])
        rows = gradient_of_a_table()
        masked = numpy.ma.masked_array([1.0, 2.0], mask=[False, True])
        with self.assertRaisesRegex(skiff.InvalidArgumentError, 'array "a": a tensor with LoD'):
            skiff.write_safetensors(path, {"a": ragged})
        for write in (skiff.write_npz, skiff.write_safetensors):
            with self.assertRaisesRegex(skiff.InvalidArgumentError, 'array "a": selected rows'):
                write(path, {"a": rows})
            with self.assertRaisesRegex(TypeError, "masked"):
                write(path, {"a": masked})

    def test_reading_lets_other_threads_run(self):
        for write, read, name in ((skiff.write_npz, skiff.read_npz, "a.npz"),
                                  (skiff.write_safetensors, skiff.read_safetensors, "a.safetensors")):
            with self.subTest(name):
                path = os.path.join(self.folder, name)
                write(path, {"a": numpy.zeros(1 << 20)})
                self.assertTrue(is_released_by(lambda path=path, read=read: read(path)))

    def test_safetensors_hold_every_dtype(self):
        path = os.path.join(self.folder, "a.safetensors")
        bits = numpy.array([1, 2, 3], "uint16")
        skiff.write_safetensors(path, {"a": numpy.ones((2, 2)), "b": skiff.Tensor(bits, "bfloat16")}, {"made by": "a test"})
        read = skiff.read_safetensors(path)
        self.assertEqual({name: (tensor.dtype, tensor.shape) for name, tensor in read.items()},
                         {"a": ("float64", (2, 2)), "b": ("bfloat16", (3,))})
        numpy.testing.assert_array_equal(read["b"].numpy(), bits)
        self.assertEqual(skiff.read_safetensors_metadata(path), {"made by": "a test"})
        with open(path, "wb") as stream:
            stream.write(b"nothing of the kind")
        for read in (skiff.read_safetensors, skiff.read_safetensors_metadata):
            with self.assertRaises(skiff.DataLossError):
                read(path)

    def test_safetensors_have_metadata_or_none(self):
        path = os.path.join(self.folder, "a.safetensors")
        for metadata in ({}, {"format": "pt", "ключ": "значение", "empty": ""}):
            skiff.write_safetensors(path, {"a": numpy.zeros(3)}, metadata)
            self.assertEqual(skiff.read_safetensors_metadata(path), metadata)
        with self.assertRaises(TypeError):
            skiff.write_safetensors(path, {"a": numpy.zeros(3)}, {"epoch": 3})

    def test_safetensors_are_mapped(self):
        path = os.path.join(self.folder, "a.safetensors")
        tensors = {"bool": numpy.array([True, False]), "x": self.feed["x"].copy(), "y": numpy.ones((3, 16))}
        skiff.write_safetensors(path, tensors)
        mapped = skiff.read_safetensors(path, mmap=True)
        for name, expected in tensors.items():
            numpy.testing.assert_array_equal(mapped[name].numpy(), expected)
        with open("/proc/self/maps", encoding="utf-8") as maps:
            self.assertIn(path, maps.read())
        test = self.executor.compile(self.main.clone_for_test())
        numpy.testing.assert_array_equal(test.run({"x": mapped["x"]}, [self.y])[0], test.run(self.feed, [self.y])[0])

        # Writing changes the memory, not the file, and replacing the file doesn't change the memory.
        array = mapped["y"].numpy()
        array[0, 0] = 5
        self.assertEqual(mapped["y"].numpy()[0, 0], 5)
        numpy.testing.assert_array_equal(skiff.read_safetensors(path)["y"].numpy(), tensors["y"])
        skiff.write_safetensors(path, {"z": numpy.zeros(1)})
        del mapped
        numpy.testing.assert_array_equal(array[1:], tensors["y"][1:])

    def test_hashes_tell_weights_apart(self):
        before = skiff.weights_hash(self.executor.scope, self.main.parameters)
        self.assertRegex(before, "^[0-9a-f]{16}$")
        self.train(1)
        self.assertNotEqual(skiff.weights_hash(self.executor.scope, self.main.parameters), before)
        with self.assertRaises(skiff.NotFoundError):
            skiff.weights_hash(self.executor.scope, ["nothing"])


if __name__ == "__main__":
    unittest.main()
