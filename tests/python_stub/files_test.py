"""Tests checkpoints, inference models, archives and the hash of weights in Python."""
import os
import tempfile
import unittest

import numpy

from tests.python_stub.package import skiff

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
                model = skiff.load_inference_model(folder, scope, params_filename=params_filename)
                self.assertEqual((model.feed_names, len(model.fetch_names)), (["x"], 1))
                test = self.executor.compile(self.main.clone_for_test())
                expected, = test.run(self.feed, [self.y])
                result, = skiff.Executor("cpu", scope).compile(model.program).run(self.feed, model.fetch_names)
                numpy.testing.assert_array_equal(result, expected)
        with self.assertRaises(skiff.NotFoundError):
            skiff.load_inference_model(self.folder, skiff.Scope())

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

    def test_safetensors_hold_every_dtype(self):
        path = os.path.join(self.folder, "a.safetensors")
        bits = numpy.array([1, 2, 3], "uint16")
        skiff.write_safetensors(path, {"a": numpy.ones((2, 2)), "b": skiff.Tensor(bits, "bfloat16")}, {"made by": "a test"})
        read = skiff.read_safetensors(path)
        self.assertEqual({name: (tensor.dtype, tensor.shape) for name, tensor in read.items()},
                         {"a": ("float64", (2, 2)), "b": ("bfloat16", (3,))})
        numpy.testing.assert_array_equal(read["b"].numpy(), bits)
        with open(path, "wb") as stream:
            stream.write(b"nothing of the kind")
        with self.assertRaises(skiff.DataLossError):
            skiff.read_safetensors(path)

    def test_hashes_tell_weights_apart(self):
        before = skiff.weights_hash(self.executor.scope, self.main.parameters)
        self.assertRegex(before, "^[0-9a-f]{16}$")
        self.train(1)
        self.assertNotEqual(skiff.weights_hash(self.executor.scope, self.main.parameters), before)
        with self.assertRaises(skiff.NotFoundError):
            skiff.weights_hash(self.executor.scope, ["nothing"])


if __name__ == "__main__":
    unittest.main()
