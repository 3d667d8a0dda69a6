"""Tests runs from Python: feeds and fetches without copies, what is refused, scopes, threads, interrupts."""
import ctypes
import gc
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import unittest
import weakref

import numpy

from tests.python_stub.package import FOLDER, skiff
from tests.python_stub.selected_rows import gradient_of_a_table

layers = skiff.layers


def linear(width=4, optimizer=None):
    """(main, startup, y, loss) of y = w x, where w is 2."""
    main, startup = skiff.Program(), skiff.Program()
    with skiff.program_guard(main, startup):
        x = layers.data("x", [-1, width])
        weight = skiff.ParamAttr(name="w", initializer=skiff.initializer.constant(2.0))
        y = layers.fc(x, 1, param_attr=weight, bias_attr=None)
        loss = layers.mean(y)
        if optimizer:
            optimizer.minimize(loss)
    return main, startup, y, loss


def identity(dtype, dims=(-1, 2)):
    """A compiled program whose y is its x."""
    main = skiff.Program()
    with skiff.program_guard(main, skiff.Program()):
        layers.assign(layers.data("x", dims, dtype))
    return skiff.Executor().compile(main), main.block().ops[0].outputs["Out"][0]


def peak_memory():
    """The most bytes that this process has had in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Runs(unittest.TestCase):
    def setUp(self):
        self.main, startup, self.y, self.loss = linear()
        self.executor = skiff.Executor()
        self.executor.run(startup)
        self.step = self.executor.compile(self.main)
        self.x = numpy.arange(8, dtype="float32").reshape(2, 4)

    def test_return_arrays_in_order(self):
        y, loss = self.step.run({"x": self.x}, [self.y, self.loss.name])
        numpy.testing.assert_array_equal(y, [[12], [44]])
        self.assertEqual((y.dtype, loss.shape, loss.item()), (numpy.float32, (), 28))
        self.assertEqual(self.step.run({"x": self.x}), [])
        self.assertTrue(y.flags.writeable)

    def test_compute_shapes(self):
        main = skiff.Program()
        with skiff.program_guard(main, skiff.Program()):
            x = layers.data("x", [-1, 2, 3])
            rows = layers.slice(layers.shape_of(x), axes=[0], starts=[0], ends=[1])
            six = layers.assign_value([1], numpy.array([6], "int32"))
            y = layers.reshape_to(x, layers.concat([rows, six]))
        self.assertEqual(y.shape, (-1, -1))
        step = skiff.Executor().compile(main)
        for count in (2, 3):
            fed = numpy.arange(6 * count, dtype="float32").reshape(count, 2, 3)
            numpy.testing.assert_array_equal(step.run({"x": fed}, [y])[0], fed.reshape(count, 6))

    def test_let_feeds_go(self):
        count = sys.getrefcount(self.x)
        self.step.run({"x": self.x}, [self.y])
        self.assertEqual(sys.getrefcount(self.x), count)

    def test_read_feeds_in_place(self):
        main = skiff.Program()
        with skiff.program_guard(main, skiff.Program()):
            row = layers.slice(layers.data("x", [-1, 1024]), axes=[0], starts=[1], ends=[2])
        step = skiff.Executor().compile(main)
        # Zeros that have no memory before they are touched: a copy would have.
        x = numpy.zeros((1 << 18, 1024), "float32")
        x[1] = 3
        step.run({"x": x[:2]}, [row])
        before = peak_memory()
        numpy.testing.assert_array_equal(step.run({"x": x}, [row])[0], x[1:2])
        self.assertLess(peak_memory() - before, x.nbytes // 4)

    def test_take_every_kind_of_array(self):
        strided = numpy.zeros((2, 8), "float32")
        strided[:, ::2] = self.x
        raw = numpy.zeros(self.x.nbytes + 1, "uint8")
        unaligned = raw[1:].view("float32").reshape(2, 4)
        unaligned[:] = self.x
        read_only = self.x.copy()
        read_only.flags.writeable = False
        for name, array in (("strided", strided[:, ::2]), ("transposed", numpy.asfortranarray(self.x)),
                            ("backwards", self.x[::-1, ::-1].copy()[::-1, ::-1]), ("unaligned", unaligned),
                            ("foreign", self.x.astype(">f4")), ("read-only", read_only),
                            ("tensor", skiff.Tensor(self.x))):
            with self.subTest(name):
                numpy.testing.assert_array_equal(self.step.run({"x": array}, [self.y])[0], [[12], [44]])

    def test_refuse_wrong_feeds(self):
        for feed, message in (
                ({"x": self.x.astype("float64")}, 'feed "x": dtype float64 given, float32 expected'),
                ({"x": self.x.astype("complex64")}, 'feed "x": an array of dtype complex64, expected bool'),
                ({"x": self.x.astype("uint16")}, 'feed "x": an array of dtype uint16, expected bool'),
                ({"x": self.x.astype(object)}, 'feed "x": an array of dtype object'),
                ({"x": self.x[:, :3]}, 'feed "x": .*3'), ({}, '"x"'), ({"x": self.x, "z": self.x}, '"z"'),
                ({"x": "text"}, 'feed "x": an array of dtype <U4'),
                ({"x": None}, 'feed "x": an array of dtype object')):
            with self.subTest(message):
                with self.assertRaisesRegex(skiff.Error, message):
                    self.step.run(feed, [self.y])
        with self.assertRaisesRegex(TypeError, "fc: size is str 'é{59}…, expected a whole number"):
            layers.fc(self.y, "é" * 80)
        masked = numpy.ma.masked_array(self.x, mask=self.x > 3)
        for feed, fetch in (({1: self.x}, [self.y]), ({"x": self.x}, "y"), ({"x": self.x}, [1]),
                            ({"x": masked}, [self.y])):
            with self.assertRaises(TypeError):
                self.step.run(feed, fetch)
        with self.assertRaisesRegex(skiff.NotFoundError, '"nothing"'):
            self.step.run({"x": self.x}, ["nothing"])

    def test_bind_arrays(self):
        bound = self.step.bind({"x": self.x}, [self.y])
        with self.assertRaisesRegex(skiff.FailedPreconditionError, "before the first step"):
            bound.fetch()
        bound.step()
        y = bound.fetch(0)
        numpy.testing.assert_array_equal(y, [[12], [44]])
        self.x[1] = 0
        bound.step()
        numpy.testing.assert_array_equal(y, [[12], [0]])
        self.assertFalse(y.flags.writeable)
        with self.assertRaises(skiff.OutOfRangeError):
            bound.fetch(1)
        self.assertGreater(bound.statistics().planned_bytes, 0)
        self.assertIn("mul", [time.type for time in bound.timed_step()])
        self.assertTrue(bound.is_current())
        self.executor.scope["w"] = numpy.zeros((4, 2), "float32")
        self.assertFalse(bound.is_current())
        with self.assertRaises(skiff.FailedPreconditionError):
            bound.step()

    def test_bind_keeps_arrays_and_refuses_copies(self):
        held = weakref.ref(self.x)
        bound = self.step.bind({"x": self.x}, [self.y])
        bound.step()
        y = bound.fetch()
        del self.x, self.step, self.executor
        gc.collect()
        self.assertIsNotNone(held())
        bound.step()
        del bound
        gc.collect()
        self.assertIsNone(held())
        numpy.testing.assert_array_equal(y, [[12], [44]])
        step = self.compiled()
        for feed in (numpy.zeros((2, 8), "float32")[:, ::2], [[1.0] * 4]):
            with self.assertRaisesRegex(skiff.InvalidArgumentError, 'feed "x": .*read in place'):
                step.bind({"x": feed}, [self.y])

    def compiled(self):
        executor = skiff.Executor()
        executor.run(linear()[1])
        return executor.compile(self.main)

    def test_compile_with_options(self):
        step = self.executor.compile(self.main, passes="none", memory=skiff.MemoryOptions(policy="none"),
                                     kernels={"mul": "plain"})
        self.assertEqual(step.reports, [])
        self.assertEqual(step.program, self.main)
        numpy.testing.assert_array_equal(step.run({"x": self.x}, [self.y])[0], [[12], [44]])
        step = self.executor.compile(self.main, graphs=False)
        numpy.testing.assert_array_equal(step.run({"x": self.x}, [self.y])[0], [[12], [44]])
        with self.assertRaises(TypeError):
            self.executor.compile(self.main, graphs="no")
        step = self.executor.compile(self.main, math="tf32")  # which the CPU ignores
        numpy.testing.assert_array_equal(step.run({"x": self.x}, [self.y])[0], [[12], [44]])
        with self.assertRaisesRegex(skiff.InvalidArgumentError, 'math "half": expected full or tf32'):
            self.executor.compile(self.main, math="half")
        with self.assertRaises(skiff.NotFoundError):
            self.executor.compile(self.main, passes="+nothing")
        with self.assertRaises(skiff.Error):
            self.executor.compile(self.main, kernels={"mul": "nothing"})
        self.assertIn("layout", skiff.plan_pass_names())
        self.assertIn("early_update", skiff.program_pass_names())
        self.assertEqual(self.executor.place, "cpu")
        with self.assertRaises(skiff.Error):
            skiff.Executor("cuda:99")

    def test_leave_the_scope_as_it_was_after_an_error(self):
        main, startup = skiff.Program(), skiff.Program()
        with skiff.program_guard(main, startup):
            label = layers.data("label", [-1, 1], "int64")
            logits = layers.fc(layers.data("x", [-1, 4]), 3)
            loss = layers.mean(layers.softmax_with_cross_entropy(logits, label))
            skiff.optimizer.Momentum(learning_rate=0.1).minimize(loss)
        executor = skiff.Executor()
        executor.run(startup)
        step = executor.compile(main)
        before = skiff.weights_hash(executor.scope, executor.scope)
        with self.assertRaisesRegex(skiff.Error, "executor_test.py:.*label"):
            step.run({"x": self.x, "label": numpy.array([[1], [7]])}, [loss])
        self.assertEqual(skiff.weights_hash(executor.scope, executor.scope), before)
        step.run({"x": self.x, "label": numpy.array([[1], [2]])}, [loss])
        self.assertNotEqual(skiff.weights_hash(executor.scope, executor.scope), before)


class ChangingFeeds(unittest.TestCase):
    """Whoever writes to a feed during a run gets some result or an Error, but doesn't end the process."""

    def run_while_changing(self, step, feed, name, fetch):
        # The last one alone: it is the likeliest to be good in a check and bad in the loop that follows.
        self.run_while_flipping(step, feed, feed[name].reshape(-1)[-1:], (1 << 40, -(1 << 40)), fetch, runs=1000)

    def run_while_flipping(self, step, feed, numbers, others, fetch, runs):
        """`numbers` are elements of a feed, in its memory, all equal, which become `others` in turn."""
        good = numbers.flat[0]
        running = [True]

        def change():
            while running:
                for number in (*others, good):
                    numbers[:] = number
        thread = threading.Thread(target=change)
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-4)
        thread.start()
        try:
            for _ in range(runs):
                try:
                    step.run(feed, fetch)
                except skiff.OutOfRangeError:
                    pass
        finally:
            running.clear()
            thread.join()
            sys.setswitchinterval(interval)
        numbers[:] = good
        step.run(feed, fetch)

    def trained(self, loss_of):
        """A step that trains, and its loss."""
        main, startup = skiff.Program(), skiff.Program()
        with skiff.program_guard(main, startup):
            loss = loss_of()
            skiff.optimizer.Sgd(learning_rate=0.1).minimize(loss)
        executor = skiff.Executor()
        executor.run(startup)
        return executor.compile(main), loss

    def test_ids(self):
        for is_sparse in (False, True):
            with self.subTest(is_sparse=is_sparse):
                step, loss = self.trained(lambda sparse=is_sparse: layers.mean(
                    layers.embedding(layers.data("ids", [-1], "int64"), rows=50, width=16, is_sparse=sparse)))
                self.run_while_changing(step, {"ids": numpy.arange(4000) % 50}, "ids", [loss])

    def test_labels(self):
        step, loss = self.trained(lambda: layers.mean(layers.softmax_with_cross_entropy(
            layers.fc(layers.data("x", [-1, 4]), 3), layers.data("label", [-1, 1], "int64"))))
        feed = {"x": numpy.ones((4000, 4), "float32"), "label": numpy.arange(4000).reshape(-1, 1) % 3}
        self.run_while_changing(step, feed, "label", [loss])

    def test_lengths_of_keys(self):
        step, loss = self.trained(lambda: layers.mean(layers.attention(
            layers.data("x", [-1, 8, 4]), heads=2, key_lengths=layers.data("lengths", [-1], "int64"))))
        feed = {"x": numpy.ones((500, 8, 4), "float32"), "lengths": numpy.arange(500) % 9}
        self.run_while_changing(step, feed, "lengths", [loss])

    def run_while_an_index_changes(self, pick):
        """`pick` makes something of rows and their indices."""
        step, loss = self.trained(lambda: layers.mean(pick(
            layers.fc(layers.data("x", [-1, 4]), 16), layers.data("index", [-1], "int64"))))
        feed = {"x": numpy.ones((4000, 4), "float32"), "index": numpy.arange(4000) % 50}
        self.run_while_changing(step, feed, "index", [loss])

    def test_indices_of_gather(self):
        for pick in (layers.gather, layers.index_select):
            with self.subTest(pick.__name__):
                self.run_while_an_index_changes(pick)

    def test_indices_of_scatter(self):
        for overwrite in (False, True):
            with self.subTest(overwrite=overwrite):
                self.run_while_an_index_changes(lambda rows, index, overwrite=overwrite: layers.scatter(
                    rows, index, layers.scale(rows, scale=2.0), overwrite=overwrite))

    def test_tuples_of_indices(self):
        self.run_while_an_index_changes(lambda rows, index: layers.scatter_nd_add(
            rows, layers.reshape(index, [-1, 1]), layers.gather_nd(rows, layers.reshape(index, [-1, 1]))))


    def test_what_is_counted(self):
        n = 300_000
        bools, floats, zeros = numpy.zeros(n, bool), numpy.ones(n, "float32"), numpy.zeros((n, 1), "int64")
        offsets, rows = [[0, n // 2, n]], floats.reshape(-1, 1)
        ones, pairs = numpy.ones((n // 2, 1), "int64"), [list(range(0, n + 1, 2))]
        cases = {
            "masked_select": (layers.masked_select, {"x": floats, "m": bools}, bools, [True]),
            "where_index": (layers.where_index, {"m": bools}, bools, [True]),
            "where_index of floats": (layers.where_index, {"x": floats}, floats, [0]),
            "sequence_unpad": (layers.sequence_unpad, {"x": numpy.ones((n, 2, 1), "float32"), "lengths": zeros[:, 0]},
                               zeros, [2]),
            "sequence_erase": (lambda x: layers.sequence_erase(x, [0]), {"x": skiff.Tensor(zeros, lod=offsets)}, zeros,
                               [1]),
            "sequence_slice": (layers.sequence_slice, {
                "x": skiff.Tensor(rows, lod=pairs), "from": zeros[:n // 2], "length": ones}, ones, [2, 1 << 40]),
            "sequence_scatter": (layers.sequence_scatter, {
                "x": rows[:2], "ids": skiff.Tensor(zeros, lod=offsets),
                "updates": skiff.Tensor(rows, lod=offsets)}, zeros, [1 << 40]),
            "multinomial": (lambda x: layers.multinomial(x, samples=n), {"x": floats}, floats, [0])}
        for name, (layer, feed, numbers, others) in cases.items():
            with self.subTest(name):
                main = skiff.Program()
                with skiff.program_guard(main, skiff.Program()):
                    y = layer(*(layers.data(key, [-1, *value.shape[1:]], value.dtype,
                                            lod_level=len(getattr(value, "lod", [])))
                                for key, value in feed.items()))
                step = skiff.Executor().compile(main)
                self.run_while_flipping(step, feed, numbers, others, [y], runs=20)


class Dtypes(unittest.TestCase):
    def test_of_numpy_come_back(self):
        for dtype in ("bool", "int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64"):
            with self.subTest(dtype):
                array = numpy.array([[0, 1], [2, 3]], dtype)
                step, y = identity(dtype)
                result, = step.run({"x": array}, [y])
                self.assertEqual(result.dtype, array.dtype)
                numpy.testing.assert_array_equal(result, array)

    def test_bools_are_true_or_false(self):
        bad = numpy.array([0, 1, 2, 255], "uint8").view(bool)
        step, y = identity("bool", [-1])
        message = "element 2 is a bool of value 2, expected 0 or 1"
        with self.assertRaisesRegex(skiff.InvalidArgumentError, f'feed "x": {message}'):
            step.run({"x": bad}, [y])
        with self.assertRaisesRegex(skiff.InvalidArgumentError, f'variable "m": {message}'):
            skiff.Scope()["m"] = bad

    def test_bfloat16_is_its_bits(self):
        bits = (numpy.array([[1.0, -2.5]], "float32").view("uint32") >> 16).astype("uint16")
        step, y = identity("bfloat16")
        result, = step.run({"x": skiff.Tensor(bits, "bfloat16")}, [y])
        numpy.testing.assert_array_equal(result, bits)
        tensor, = step.run({"x": skiff.Tensor(bits, "bfloat16")}, [y], return_tensors=True)
        self.assertEqual((tensor.dtype, tensor.shape, tensor.numpy().dtype), ("bfloat16", (1, 2), numpy.uint16))
        with self.assertRaisesRegex(skiff.InvalidArgumentError, "expected an array of dtype uint16"):
            skiff.Tensor(numpy.ones((1, 2), "float32"), "bfloat16")
        with self.assertRaisesRegex(TypeError, "NumPy has no bfloat16, expected dtype uint16"):
            numpy.asarray(tensor, dtype="float32")

    def test_empty_and_scalar_arrays(self):
        step, y = identity("float32")
        self.assertEqual(step.run({"x": numpy.zeros((0, 2), "float32")}, [y])[0].shape, (0, 2))
        step, y = identity("float32", [])
        self.assertEqual(step.run({"x": numpy.float32(3)}, [y])[0], numpy.float32(3))


class Tensors(unittest.TestCase):
    def test_share_the_memory_of_arrays(self):
        array = numpy.zeros((2, 3), "float32")
        tensor = skiff.Tensor(array, "float32")
        array[1, 2] = 5
        self.assertEqual(tensor.numpy()[1, 2], 5)
        self.assertTrue(numpy.shares_memory(numpy.asarray(tensor), array))
        self.assertEqual(numpy.asarray(tensor, "float64").dtype, numpy.float64)
        self.assertEqual((tensor.shape, tensor.place, repr(tensor)), ((2, 3), "cpu", "Tensor(float32, [2, 3], cpu)"))
        held = weakref.ref(array)
        view = tensor.numpy()
        del array, tensor
        gc.collect()
        self.assertIsNotNone(held())
        del view
        gc.collect()
        self.assertIsNone(held())
        with self.assertRaisesRegex(skiff.InvalidArgumentError, "dtype float64, expected float32"):
            skiff.Tensor(numpy.zeros(2), "float32")

    def test_are_copied_for_numpy_on_request(self):
        array = numpy.ones((2, 2), "float32")
        tensor = skiff.Tensor(array)
        for shares, made in ((True, tensor.__array__()), (True, tensor.__array__(copy=False)),
                             (True, tensor.__array__("float32", copy=False)), (False, tensor.__array__(copy=True)),
                             (False, tensor.__array__("float64")), (False, numpy.array(tensor))):
            self.assertIs(numpy.shares_memory(made, array), shares)
            numpy.testing.assert_array_equal(made, array)
        with self.assertRaisesRegex(ValueError, "copy=False"):
            tensor.__array__("float64", copy=False)

    def test_of_read_only_memory_are_read_only(self):
        scope = skiff.Scope()
        scope["w"] = numpy.ones(3, "float32")
        array = numpy.ones(3, "float32")
        array.flags.writeable = False
        bits = memoryview(b"abcdef").cast("H")
        for name, tensor in (("scope", skiff.Tensor(scope.tensor("w"))), ("array", skiff.Tensor(array)),
                             ("tensor", skiff.Tensor(skiff.Tensor(array))),
                             ("bytes", skiff.Tensor(memoryview(b"abcdef"))),
                             ("bits", skiff.Tensor(bits, "bfloat16"))):
            with self.subTest(name):
                for view in (tensor.numpy(), numpy.asarray(tensor)):
                    with self.assertRaisesRegex(ValueError, "read-only"):
                        view[0] = 90
                with self.assertRaisesRegex(skiff.FailedPreconditionError, "read-only"):
                    tensor.__dlpack__()
        # A copy is its Tensor's own.
        skiff.Tensor(array[::-1]).numpy()[0] = 7
        numpy.testing.assert_array_equal(array, [1, 1, 1])

    def test_refuse_masks(self):
        masked = numpy.ma.masked_array([1.0, 2.0], mask=[False, True])
        with self.assertRaisesRegex(TypeError, "Tensor: found a masked array, expected one without a mask"):
            skiff.Tensor(masked)
        numpy.testing.assert_array_equal(skiff.Tensor(masked.filled(0)).numpy(), [1, 0])
        bits = numpy.ma.masked_array([1, 2], mask=[False, True], dtype="uint16")
        with self.assertRaisesRegex(TypeError, "masked"):
            skiff.Tensor(bits, "bfloat16")

    def test_of_a_device_are_no_feeds(self):
        try:
            executor = skiff.Executor("cuda")
        except skiff.Error as error:
            self.skipTest(str(error))
        main, startup, y, _ = linear()
        executor.run(startup)
        weights = executor.scope.tensor("w")
        self.assertEqual(weights.__dlpack_device__(), (2, 0))
        with self.assertRaisesRegex(skiff.InvalidArgumentError, "a tensor on cuda.*, expected one on the CPU"):
            skiff.Tensor(weights)
        with self.assertRaisesRegex(skiff.InvalidArgumentError, 'feed "x": a tensor on cuda'):
            executor.compile(main).run({"x": weights}, [y])

    def test_have_offsets_of_sequences(self):
        rows = numpy.arange(6, dtype="float32").reshape(3, 2)
        self.assertEqual(skiff.Tensor(rows, lod=[[0, 1, 3]]).lod, [[0, 1, 3]])
        with self.assertRaises(skiff.InvalidArgumentError):
            skiff.Tensor(rows, lod=[[0, 1]])
        main = skiff.Program()
        with skiff.program_guard(main, skiff.Program()):
            total = layers.reduce_sum(layers.data("x", [-1, 2], lod_level=1))
        step = skiff.Executor().compile(main)
        self.assertEqual(step.run({"x": skiff.Tensor(rows, lod=[[0, 1, 3]])}, [total])[0], 15)
        with self.assertRaisesRegex(skiff.InvalidArgumentError, 'feed "x": .*LoD'):
            step.run({"x": rows}, [total])

    def test_of_selected_rows(self):
        gradient = gradient_of_a_table()
        self.assertEqual((gradient.is_selected_rows, gradient.rows, gradient.height), (True, [4, 1], 9))
        numpy.testing.assert_array_equal(gradient.numpy(), numpy.full((2, 2), 0.25))
        with self.assertRaisesRegex(skiff.InvalidArgumentError, "return_tensors=True"):
            gradient_of_a_table(return_tensors=False)


class DlPackDevice(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("index", ctypes.c_int32)]


class DlPackType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DlPackTensor(ctypes.Structure):
    """A DLManagedTensor, whose first member is a DLTensor."""
    Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    _fields_ = [("data", ctypes.c_void_p), ("device", DlPackDevice), ("ndim", ctypes.c_int32), ("type", DlPackType),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64), ("context", ctypes.c_void_p), ("deleter", Deleter)]


class DlPackProducer:
    """Gives the memory of an array of float32 away, as that of a device."""

    def __init__(self, array, device_type):
        self.array, self.deleted = array, 0
        self.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.tensor = DlPackTensor(array.ctypes.data, DlPackDevice(device_type, 0), array.ndim, DlPackType(2, 32, 1),
                                   self.shape, None, 0, None, DlPackTensor.Deleter(self.delete))

    def delete(self, _):
        self.deleted += 1

    def __dlpack__(self, stream=None):
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(ctypes.addressof(self.tensor), b"dltensor", None)


class DlPack(unittest.TestCase):
    def test_gives_memory_away(self):
        step, y = identity("float32")
        array = numpy.ones((3, 2), "float32")
        tensor, = step.run({"x": array}, [y], return_tensors=True)
        taken = numpy.from_dlpack(tensor)
        self.assertTrue(numpy.shares_memory(taken, tensor.numpy()))
        del tensor
        gc.collect()
        numpy.testing.assert_array_equal(taken, array)
        # A capsule that nobody takes frees what it holds.
        skiff.Tensor(array).__dlpack__()
        self.assertEqual(skiff.Tensor(array).__dlpack_device__(), (1, 0))

    def test_takes_memory(self):
        class Producer:
            """Something with DLPack that is no array."""

            def __init__(self, array):
                self.array = array

            def __dlpack__(self, stream=None):
                return self.array.__dlpack__()

        for dtype in ("int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64"):
            array = numpy.arange(6).astype(dtype).reshape(3, 2)
            tensor = skiff.Tensor(Producer(array))
            self.assertEqual(tensor.dtype, dtype)
            self.assertTrue(numpy.shares_memory(tensor.numpy(), array))
            # Not contiguous: copied.
            numpy.testing.assert_array_equal(skiff.Tensor(Producer(array[::-1].T)).numpy(), array[::-1].T)
        step, y = identity("float32")
        array = numpy.ones((3, 2), "float32")
        count = sys.getrefcount(array)
        numpy.testing.assert_array_equal(step.run({"x": Producer(array)}, [y])[0], array)
        self.assertEqual(sys.getrefcount(array), count)
        with self.assertRaisesRegex(skiff.InvalidArgumentError, "64 bits.*which Skiff lacks"):
            skiff.Tensor(Producer(numpy.zeros(2, "uint64")))
        with self.assertRaisesRegex(skiff.InvalidArgumentError, "isn't contiguous"):
            step.bind({"x": Producer(numpy.ones((2, 3), "float32").T)}, [y])

    def test_refuses_memory_of_a_device(self):
        step, y = identity("float32")
        array = numpy.ones((3, 2), "float32")
        for device_type in (2, 4, 13):  # CUDA, OpenCL, managed memory of CUDA
            given = DlPackProducer(array, device_type)
            message = f"memory of a device .DLPack type {device_type}., expected the CPU's"
            with self.assertRaisesRegex(skiff.InvalidArgumentError, "Tensor: " + message):
                skiff.Tensor(given)
            self.assertEqual(given.deleted, 1)
            for run in (step.run, step.bind):
                with self.assertRaisesRegex(skiff.InvalidArgumentError, 'feed "x": ' + message):
                    run({"x": given}, [y])
        for device_type in (1, 3):  # the CPU, memory of the CPU that CUDA knows
            given = DlPackProducer(array, device_type)
            numpy.testing.assert_array_equal(step.run({"x": given}, [y])[0], array)
            self.assertEqual(given.deleted, 1)

    def test_goes_round(self):
        bits = numpy.array([1, 2], "uint16")
        tensor = skiff.Tensor(bits, "bfloat16")

        class Producer:
            def __dlpack__(self, stream=None):
                return tensor.__dlpack__()
        again = skiff.Tensor(Producer())
        self.assertEqual(again.dtype, "bfloat16")
        self.assertTrue(numpy.shares_memory(again.numpy(), bits))

    def test_refuses_what_it_cannot_share(self):
        array = numpy.ones(2, "float32")
        array.flags.writeable = False
        with self.assertRaisesRegex(skiff.FailedPreconditionError, "read-only"):
            skiff.Tensor(array).__dlpack__()

        class Wrong:
            def __dlpack__(self, stream=None):
                return 3
        with self.assertRaisesRegex(skiff.InvalidArgumentError, "dltensor"):
            skiff.Tensor(Wrong())


class Scopes(unittest.TestCase):
    def test_are_like_dicts(self):
        scope = skiff.Scope()
        scope["a"] = numpy.ones((2, 2), "float32")
        scope["b"] = [1, 2]
        self.assertEqual((list(scope), len(scope), "a" in scope, "c" in scope), (["a", "b"], 2, True, False))
        value = scope["a"]
        value[:] = 7
        numpy.testing.assert_array_equal(scope["a"], numpy.ones((2, 2)))
        del scope["b"]
        self.assertEqual(scope.keys(), ["a"])
        for use in (lambda: scope["b"], lambda: scope.tensor("b"), lambda: scope.__delitem__("b")):
            with self.assertRaises(KeyError):
                use()

    def test_take_variables_for_names(self):
        scope, x = skiff.Scope(), linear()[2]
        scope[x] = numpy.ones((2, 1), "float32")
        self.assertEqual((list(scope), x in scope), ([x.name], True))
        numpy.testing.assert_array_equal(scope[x], scope[x.name])
        self.assertEqual(scope.tensor(x).shape, (2, 1))
        del scope[x]
        self.assertNotIn(x, scope)
        with self.assertRaisesRegex(TypeError, "found 1, expected a Variable or the name of one"):
            scope[1]  # pylint: disable=pointless-statement

    def test_share_storage_on_request(self):
        main, startup, _, loss = linear(optimizer=skiff.optimizer.Sgd(learning_rate=4.0))
        scope = skiff.Scope()
        executor = skiff.Executor("cpu", scope)
        executor.run(startup)
        view = scope.tensor("w").numpy()
        step = executor.compile(main)
        step.run({"x": numpy.ones((1, 4), "float32")}, [loss])
        numpy.testing.assert_array_equal(view, numpy.full((4, 1), -2))
        with self.assertRaises(ValueError):
            view[0] = 1
        scope["w"] = numpy.zeros((4, 1), "float32")
        numpy.testing.assert_array_equal(view, numpy.zeros((4, 1)))
        self.assertIs(executor.scope, scope)
        array = numpy.ones((4, 1), "float32")
        scope["w"] = array
        array[:] = 9
        numpy.testing.assert_array_equal(scope["w"], numpy.ones((4, 1)))

    def test_live_as_long_as_what_uses_them(self):
        main, startup, _, loss = linear()
        step = (lambda executor: (executor.run(startup), executor.compile(main))[1])(skiff.Executor())
        gc.collect()
        self.assertEqual(step.run({"x": numpy.ones((1, 4), "float32")}, [loss])[0], 8)


class Threads(unittest.TestCase):
    def test_go_on_during_a_run(self):
        main = skiff.Program()
        with skiff.program_guard(main, skiff.Program()):
            x = layers.data("x", [400, 400])
            y = x
            for _ in range(20):
                y = layers.mat_mul(y, x, alpha=0.001)
        step = skiff.Executor().compile(main)
        feed = {"x": numpy.ones((400, 400), "float32")}
        step.run(feed, [y])
        # A thread that holds the interpreter keeps it until it waits for something or lets it go.
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1000)
        running, turns = threading.Event(), 0

        def run():
            running.set()
            step.run(feed, [y])
            running.clear()
        thread = threading.Thread(target=run)
        thread.start()
        running.wait()
        while running.is_set():
            turns += 1
            time.sleep(0.001)
        thread.join()
        self.assertGreater(turns, 0)

    def test_of_one_scope_take_turns(self):
        main, startup, _, loss = linear(optimizer=skiff.optimizer.Sgd(learning_rate=1.0))
        executor = skiff.Executor()
        executor.run(startup)
        step = executor.compile(main)
        feed = {"x": numpy.ones((1, 4), "float32")}

        def run():
            for _ in range(200):
                step.run(feed, [loss])
                executor.scope["w"]  # pylint: disable=pointless-statement
        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(executor.scope["w"][0], 2 - 800)
        self.assertEqual(executor.scope["@SKIFF_STEP@"], [800])


    def beside(self, work, others, times):
        """Does `work` so many times while other threads do something else."""
        running, failures = [True], []

        def go_on(other):
            try:
                while running:
                    other()
            except BaseException as failure:  # pylint: disable=broad-except
                failures.append(failure)
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-6)
        threads = [threading.Thread(target=go_on, args=[other]) for other in others]
        for thread in threads:
            thread.start()
        try:
            for _ in range(times):
                work()
        finally:
            running.clear()
            for thread in threads:
                thread.join()
        self.assertEqual(failures, [])

    def test_fetch_beside_a_step(self):
        main = skiff.Program()
        with skiff.program_guard(main, skiff.Program()):
            y = layers.relu(layers.masked_select(layers.data("x", [-1]), layers.data("m", [-1], "bool")))
        bound = skiff.Executor().compile(main).bind({"x": numpy.ones(64, "float32"), "m": numpy.ones(64, bool)}, [y])
        bound.step()

        def read():
            self.assertEqual((bound.fetch().shape, bound.is_current()), ((64,), True))
            self.assertGreater(bound.statistics().instructions, 0)
        self.beside(bound.step, [read] * 4, times=3000)

    def test_let_bound_programs_go_beside_others(self):
        startup = linear()[1]
        executor = skiff.Executor()
        step, scope = executor.compile(startup), executor.scope

        def use():
            for i in range(100):
                scope[f"v{i}"] = numpy.zeros(1, "float32")
            for i in range(100):
                del scope[f"v{i}"]

        def bind():
            # Not run: its variable leaves the scope with it.
            self.assertTrue(step.bind())
            self.assertNotIn("w", scope)
        self.beside(bind, [use], times=3000)
        self.assertEqual(list(scope), ["@SKIFF_STEP@"])

    def test_of_clones_run_at_the_same_time(self):
        main, startup = skiff.Program(), skiff.Program()
        with skiff.program_guard(main, startup):
            x = layers.data("x", [-1, 4])
            weight = skiff.ParamAttr(name="w", initializer=skiff.initializer.constant(2.0))
            y = layers.batch_norm(layers.fc(x, 3, param_attr=weight))
        executor = skiff.Executor()
        executor.run(startup)
        with self.assertRaisesRegex(skiff.FailedPreconditionError, '"batch_norm" writes "batch_norm_0'):
            executor.compile(main).clone()
        step = executor.compile(main.clone_for_test())
        expected, = step.run({"x": numpy.ones((2, 4), "float32")}, [y])
        together, answers, failures = threading.Barrier(4), [], []

        def serve():
            try:
                mine = step.clone()
                together.wait()
                for rows in range(1, 100):
                    answers.extend(mine.run({"x": numpy.ones((rows % 8 + 1, 4), "float32")}, [y])[0])
            except BaseException as failure:  # pylint: disable=broad-except
                failures.append(failure)
                together.abort()
        threads = [threading.Thread(target=serve) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(len(answers), 4 * sum(rows % 8 + 1 for rows in range(1, 100)))
        self.assertTrue((numpy.stack(answers) == expected[0]).all())
        clone = step.clone()
        executor.scope["w"] = numpy.zeros((4, 3), "float32")
        self.assertEqual(abs(clone.run({"x": numpy.ones((1, 4), "float32")}, [y])[0]).max(), 0)

    def test_finalizers_of_feeds_may_run_programs(self):
        main = skiff.Program()
        with skiff.program_guard(main, skiff.Program()):
            y = layers.relu(layers.data("x", [-1, 4]))
        program = skiff.Executor().compile(main)
        clones = [program.clone(), program.clone()]
        together, sums = threading.Barrier(2), []

        def free(own, other):
            class Feed(numpy.ndarray):
                def __del__(self):
                    together.wait()
                    sums.append(other.run({"x": numpy.ones((2, 4), "float32")}, [y])[0].sum())
            bound = own.bind({"x": numpy.ones((3, 4), "float32").view(Feed)}, [y])
            bound.step()
        threads = [threading.Thread(target=free, args=order) for order in (clones, clones[::-1])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sums, [8, 8])


LOOP = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy, skiff
main = skiff.Program()
with skiff.program_guard(main, skiff.Program()):
    y = skiff.layers.mean(skiff.layers.data("x", [-1, 4]))
bound = skiff.Executor().compile(main).bind({"x": numpy.ones((2, 4), "float32")}, [y])
print("ready", flush=True)
try:
    while True:
        bound.step()
except KeyboardInterrupt:
    print("interrupted")
"""


class Interrupts(unittest.TestCase):
    def test_end_a_loop(self):
        with subprocess.Popen([sys.executable, "-c", LOOP, FOLDER], stdout=subprocess.PIPE, text=True) as process:
            self.assertEqual(process.stdout.readline(), "ready\n")
            time.sleep(0.1)
            os.kill(process.pid, signal.SIGINT)
            self.assertEqual(process.communicate(timeout=60)[0], "interrupted\n")
            self.assertEqual(process.returncode, 0)


if __name__ == "__main__":
    unittest.main()
