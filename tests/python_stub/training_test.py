"""Tests readers and the trainer in Python."""
import contextlib
import io
import json
import os
import signal
import tempfile
import threading
import time
import unittest

import numpy

from tests.python_stub.interpreter import is_released_by
from tests.python_stub.package import skiff
from tests.python_stub.selected_rows import gradient_of_a_table

layers = skiff.layers
ROWS = {"x": numpy.linspace(-1, 1, 40, dtype="float32").reshape(10, 4), "label": numpy.arange(10).reshape(10, 1) % 3}


def programs(precision="float32", minimized=None, **options):
    """The keyword arguments of a Trainer that are about its programs. `minimized` takes what minimize returns."""
    main, startup = skiff.Program(), skiff.Program()
    main.seed = startup.seed = 5
    with skiff.program_guard(main, startup):
        x, label = layers.data("x", [-1, 4]), layers.data("label", [-1, 1], "int64")
        scores = layers.fc(x, 3)
        loss = layers.mean(layers.softmax_with_cross_entropy(scores, label))
        accuracy = layers.accuracy(layers.softmax(scores), label)
        before = main.clone_for_test()
        rate = skiff.learning_rate.constant(0.1)
        result = skiff.optimizer.Momentum(learning_rate=rate).minimize(loss, precision=precision, **options)
    if minimized is not None:
        minimized.append(result)
    clones = {"test": before} if precision == "float32" else {"test": main.clone_for_test(), "model": before}
    return {**clones, "main": main, "startup": startup, "loss": loss, "learning_rate": rate, "model_inputs": [x],
            "model_outputs": [scores], "decisive_metric": "accuracy",
            "metrics": [skiff.Metric("accuracy", accuracy, percent=True, larger_is_better=True)]}


def array_reader(**options):
    return skiff.ArrayReader(ROWS, batch_size=4, **options)


class Readers(unittest.TestCase):
    def test_of_arrays(self):
        reader = array_reader()
        batches = list(reader.epoch(0))
        self.assertEqual((len(reader), [len(batch["x"]) for batch in batches]), (3, [4, 4, 2]))
        for name, rows in ROWS.items():
            numpy.testing.assert_array_equal(numpy.concatenate([batch[name] for batch in batches]), rows)
        shuffled = array_reader(shuffle=True, drop_last=True, seed=1)
        first, second = ([batch["x"][:, 0].tolist() for batch in shuffled.epoch(epoch)] for epoch in (0, 1))
        self.assertEqual([len(batch) for batch in first], [4, 4])
        self.assertNotEqual(first, second)
        self.assertEqual([batch["x"][:, 0].tolist() for batch in shuffled.epoch(0)], first)

    def test_refuse_arrays_of_other_lengths(self):
        for arrays, message in (({"x": numpy.zeros(3), "y": numpy.zeros(4)}, '"y"\\] has 4 rows, expected 3 as in "x"'),
                                ({"x": numpy.float32(1)}, "has rank 0"), ({}, "no arrays")):
            with self.assertRaisesRegex(skiff.InvalidArgumentError, message):
                skiff.ArrayReader(arrays)
        with self.assertRaises(skiff.OutOfRangeError):
            array_reader().epoch(-1)

    def test_refuse_what_they_would_lose(self):
        with self.assertRaisesRegex(skiff.InvalidArgumentError, 'arrays\\["x"\\]: a tensor with LoD'):
            skiff.ArrayReader({"x": skiff.Tensor(numpy.zeros(3), lod=[[0, 3]])})
        with self.assertRaisesRegex(TypeError, "masked"):
            skiff.ArrayReader({"x": numpy.ma.masked_array([1.0, 2.0], mask=[False, True])})

    def test_are_at_one_epoch(self):
        for reader in (array_reader(), skiff.IterableReader(lambda epoch: array_reader().epoch(epoch), 3)):
            with self.subTest(type(reader).__name__):
                first = reader.epoch(0)
                next(first)
                with self.assertRaises(skiff.OutOfRangeError):
                    reader.epoch(-1)
                next(first)
                second = reader.epoch(1)
                next(second)
                with self.assertRaisesRegex(skiff.FailedPreconditionError, "started another one"):
                    next(first)
                self.assertEqual(len(list(second)), 2)

    def test_are_at_one_thread(self):
        readers = []

        def batches(_):
            with self.assertRaisesRegex(skiff.FailedPreconditionError, "in use already"):
                readers[0].epoch(1)
            yield {"x": numpy.zeros((2, 1))}
        readers.append(skiff.IterableReader(batches, 1))
        self.assertEqual(len(list(readers[0].epoch(0))), 1)

    def test_let_other_threads_run(self):
        reader = skiff.ArrayReader({"x": numpy.zeros((4, 1 << 20), "float32")}, batch_size=4)
        self.assertTrue(is_released_by(lambda: list(reader.epoch(0))))

    def test_do_not_make_memory_writable(self):
        array = numpy.zeros((2, 1))
        array.flags.writeable = False
        batch, = skiff.IterableReader(lambda _: [{"x": array, "y": numpy.zeros((2, 1))}], 1).epoch(0)
        self.assertEqual([batch[name].flags.writeable for name in "xy"], [False, True])

    def test_give_tensors_of_what_has_no_array(self):
        rows = numpy.arange(6, dtype="float32").reshape(3, 2)
        bits = numpy.array([[1], [2]], "uint16")
        frozen = bits.copy()
        frozen.flags.writeable = False
        given = {"ragged": skiff.Tensor(rows, lod=[[0, 1, 3]]), "bits": skiff.Tensor(bits, "bfloat16"),
                 "frozen": skiff.Tensor(frozen, "bfloat16"), "selected": gradient_of_a_table(),
                 "dense": skiff.Tensor(rows), "array": rows}
        batch, = skiff.IterableReader(lambda _: [given], 1).epoch(0)
        self.assertEqual({name: type(value) for name, value in batch.items()},
                         {name: numpy.ndarray if name in ("dense", "array") else skiff.Tensor for name in given})
        self.assertEqual(batch["ragged"].lod, [[0, 1, 3]])
        numpy.testing.assert_array_equal(batch["ragged"].numpy(), rows)
        self.assertEqual([batch[name].dtype for name in ("bits", "frozen")], ["bfloat16"] * 2)
        self.assertEqual([batch[name].numpy().flags.writeable for name in ("bits", "frozen")], [True, False])
        self.assertEqual((batch["selected"].rows, batch["selected"].height), ([4, 1], 9))
        again, = skiff.IterableReader(skiff.IterableReader(lambda _: [given], 1).epoch, 1).epoch(0)
        self.assertEqual(again["ragged"].lod, [[0, 1, 3]])
        batch, = skiff.ArrayReader({"bits": given["bits"], "array": rows[:2]}, batch_size=2).epoch(0)
        numpy.testing.assert_array_equal(batch["bits"].numpy(), bits)
        self.assertEqual((batch["bits"].dtype, type(batch["array"])), ("bfloat16", numpy.ndarray))

    def test_of_iterables(self):
        reader = skiff.IterableReader(lambda epoch: ({"x": numpy.full((2, 1), epoch + i)} for i in range(3)), 3)
        self.assertEqual([batch["x"][0, 0] for batch in reader.epoch(5)], [5, 6, 7])
        self.assertEqual(len(reader), 3)

    def test_pass_on_what_iterables_raise(self):
        def fail(_):
            yield {"x": numpy.zeros((1, 1))}
            raise ZeroDivisionError("in the reader")
        batches = skiff.IterableReader(fail, 2).epoch(0)
        next(batches)
        with self.assertRaisesRegex(ZeroDivisionError, "in the reader"):
            next(batches)
        for batch, exception in (([1], TypeError), ({"x": numpy.float32(1)}, skiff.InvalidArgumentError),
                                 ({"x": object()}, skiff.InvalidArgumentError)):
            with self.assertRaises(exception):
                next(skiff.IterableReader(lambda _, batch=batch: [batch], 1).epoch(0))


class Training(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "run")

    def trainer(self, train=None, folder="", **options):
        return skiff.Trainer(**programs(), train=train or array_reader(shuffle=True), validation=array_reader(),
                             output_dir=self.folder + folder, **options)

    def test_learns_and_writes_a_model(self):
        trainer = self.trainer(epochs=3)
        result = trainer.run()
        self.assertTrue(result.finished)
        self.assertEqual([record["step"] for record in result.records], [3, 6, 9])
        self.assertLess(result.records[2]["train"]["loss"], result.records[0]["train"]["loss"])
        self.assertEqual(set(trainer.evaluate()), {"loss", "accuracy"})
        self.assertEqual(result.weights_hash, trainer.weights_hash())
        with open(os.path.join(self.folder, "training_log.jsonl"), encoding="utf-8") as stream:
            self.assertEqual([json.loads(text)["epoch"] for text in stream], [1, 2, 3])
        model = skiff.load_inference_model(os.path.join(self.folder, "model"), skiff.Scope())
        self.assertEqual(model.feed_names, ["x"])
        with self.assertRaises(skiff.FailedPreconditionError):
            self.trainer().run()

    def test_refuses_at_once_what_it_lacks(self):
        for argument, value, message in (("validation", None, "no reader of the validation"),
                                         ("train", None, "no reader of the training"),
                                         ("model_outputs", (), "the model that the training would save"),
                                         ("loss", "nothing", '"nothing": the main program has no such variable')):
            arguments = dict(programs(), train=array_reader(), validation=array_reader(), output_dir=self.folder)
            with self.subTest(argument), self.assertRaisesRegex(skiff.Error, message):
                skiff.Trainer(**dict(arguments, **{argument: value}))

    def test_two_at_once_leave_interrupts_as_they_were(self):
        arrived, go_on = threading.Semaphore(0), [threading.Event(), threading.Event()]

        def reader(i):
            def batches(epoch):
                arrived.release()
                go_on[i].wait()
                return array_reader().epoch(epoch)
            return skiff.IterableReader(batches, 3)
        trainers = [self.trainer(reader(i), folder=str(i)) for i in range(2)]
        threads = [threading.Thread(target=trainer.run) for trainer in trainers]
        for thread in threads:
            thread.start()
            arrived.acquire()  # it has taken over the signals
        for thread, event in zip(threads, go_on):
            event.set()
            thread.join()
        with self.assertRaises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)

    def test_is_the_same_from_an_iterable(self):
        reader = skiff.IterableReader(lambda epoch: array_reader(shuffle=True).epoch(epoch), 3)
        self.assertEqual(self.trainer(reader).run().weights_hash, self.trainer(folder="2").run().weights_hash)

    def test_raises_what_the_reader_raises_and_resumes(self):
        failing = [True]

        def batches(epoch):
            for i, batch in enumerate(array_reader(shuffle=True).epoch(epoch)):
                if failing[0] and epoch == 1 and i == 1:
                    raise ZeroDivisionError("no more data")
                yield batch
        with self.assertRaisesRegex(ZeroDivisionError, "no more data"):
            self.trainer(skiff.IterableReader(batches, 3), epochs=2).run()
        failing[0] = False
        trainer = self.trainer(skiff.IterableReader(batches, 3), epochs=2)
        trainer.resume()
        result = trainer.run()
        self.assertEqual(result.weights_hash, self.trainer(folder="2", epochs=2).run().weights_hash)

    def test_is_one_thread_at_a_time(self):
        trainers = []

        def batches(epoch):
            for call in (trainers[0].run, trainers[0].evaluate, trainers[0].weights_hash, trainers[0].resume):
                with self.assertRaisesRegex(skiff.FailedPreconditionError, "running already"):
                    call()
            return array_reader().epoch(epoch)
        trainers.append(self.trainer(skiff.IterableReader(batches, 3)))
        self.assertTrue(trainers[0].run().finished)

    def test_saves_when_it_is_interrupted(self):
        interrupting = [True]

        def batches(epoch):
            for i, batch in enumerate(array_reader(shuffle=True).epoch(epoch)):
                if interrupting[0] and epoch == 1 and i == 1:
                    os.kill(os.getpid(), signal.SIGINT)
                yield batch
        with self.assertRaises(KeyboardInterrupt):
            self.trainer(skiff.IterableReader(batches, 3), epochs=2).run()
        interrupting[0] = False
        trainer = self.trainer(skiff.IterableReader(batches, 3), epochs=2)
        trainer.resume()
        self.assertEqual(trainer.run().weights_hash, self.trainer(folder="2", epochs=2).run().weights_hash)


class GradientsByHand(unittest.TestCase):
    def test_are_variables_that_update_parameters(self):
        main, startup = skiff.Program(), skiff.Program()
        with skiff.program_guard(main, startup):
            x = layers.data("x", [-1, 4])
            w = layers.create_parameter([4, 1])
            y = layers.mat_mul(x, w)
            loss = layers.mean(layers.detach(y) * y)
            of_w, of_x = skiff.gradients(loss, [w, x])
            sgd = skiff.optimizer.Sgd(learning_rate=0.5)
            for pairs in ([w], [(w,)], [(w, 1)]):
                with self.assertRaisesRegex(TypeError, "a list of pairs of Variables"):
                    sgd.apply_gradients(pairs)
            sgd.apply_gradients([(w, of_w * 2.0)])
        executor = skiff.Executor()
        executor.run(startup)
        before = executor.scope[w.name]
        values, found_w, found_x = executor.run(main, {"x": ROWS["x"]}, [y, of_w, of_x])
        numpy.testing.assert_allclose(found_w, ROWS["x"].T @ values / 10, rtol=1e-5)
        numpy.testing.assert_allclose(found_x, values @ before.T / 10, rtol=1e-5)
        numpy.testing.assert_allclose(executor.scope[w.name], before - found_w, rtol=1e-5)

    def test_programs_are_summarized(self):
        summary = programs()["main"].summary(batch_size=2)
        layer = summary.layers[0]
        self.assertEqual((layer.name, layer.ops, layer.output, layer.parameters, layer.flop),
                         ("fc_0", ["mul", "elementwise_add"], (2, 3), 15, 2 * 2 * 4 * 3))
        self.assertEqual((summary.parameters, summary.trainable_parameters, summary.parameter_bytes), (15, 15, 60))
        self.assertIn("fc_0", str(summary))
        self.assertIsNone(programs()["main"].summary().flop)
        self.assertEqual(programs()["main"].summary(feeds={"x": [3, 4]}).layers[0].output, (3, 3))


class Recorder:
    """A callback that notes what it hears, and does something at a step."""

    def __init__(self, at=0, act=None):
        self.steps, self.evaluations, self.epochs, self.at, self.act = [], [], [], at, act

    def on_step(self, report, control):
        self.steps.append((report.epoch, report.batch, report.step, report.samples, sorted(report.metrics)))
        self.control = control
        if self.act and report.step == self.at:
            self.act(control)

    def on_evaluation(self, report, control):
        self.evaluations.append(report.metrics)

    def on_epoch(self, record, control):
        self.epochs.append(record)

    def state(self):
        return {"steps": str(len(self.steps))}

    def restore(self, state):
        self.steps = [None] * int(state["steps"])


class Callbacks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "run")

    def trainer(self, *callbacks, folder="", **options):
        return skiff.Trainer(**dict(programs(), **options.pop("programs", {})), train=array_reader(shuffle=True),
                             validation=array_reader(), output_dir=self.folder + folder, callbacks=callbacks, **options)

    def test_hear_of_steps_evaluations_and_epochs(self):
        recorder = Recorder()
        result = self.trainer(recorder, epochs=2).run()
        metrics = ["accuracy", "loss"]
        self.assertEqual(recorder.steps[2:4], [(1, 3, 3, 2, metrics), (2, 1, 4, 4, metrics)])
        self.assertEqual(recorder.epochs, result.records)
        self.assertEqual(recorder.evaluations, [record["validation"] for record in result.records])
        with self.assertRaisesRegex(skiff.FailedPreconditionError, "is over"):
            recorder.control.stop()

    def test_stop_and_resume_with_their_states(self):
        whole = self.trainer(epochs=2, folder="2").run().weights_hash
        self.assertFalse(self.trainer(Recorder(4, lambda control: control.stop()), epochs=2).run().finished)
        recorder = Recorder()
        trainer = self.trainer(recorder, epochs=2)
        trainer.resume()
        self.assertEqual(trainer.run().weights_hash, whole)
        self.assertEqual(recorder.steps[:4], [None] * 4)
        self.assertEqual(len(recorder.steps), 6)

    def test_without_hooks_are_refused(self):
        class WithoutRestore:
            def on_step(self, report, control):
                pass

            def state(self):
                return {}
        with self.assertRaisesRegex(TypeError, "none of the methods on_step, on_evaluation and on_epoch"):
            self.trainer(lambda report, control: None)
        with self.assertRaisesRegex(TypeError, "one of the methods state and restore"):
            self.trainer(WithoutRestore())

    def test_change_scope_and_rate(self):
        def act(control):
            self.assertIn("fc_0.w_0", control.scope)
            control.scope["fc_0.w_0"] = numpy.zeros((4, 3), "float32")
            numpy.testing.assert_array_equal(control.scope["fc_0.w_0"], 0)
            control.set_learning_rate(0)
        result = self.trainer(Recorder(3, act), epochs=2).run()
        self.assertEqual(result.records[1]["learning_rate"], 0)

    def test_raise_out_of_run(self):
        def act(_):
            raise ZeroDivisionError("in the callback")
        with self.assertRaisesRegex(ZeroDivisionError, "in the callback"):
            self.trainer(Recorder(5, act), epochs=2).run()
        trainer = self.trainer(epochs=2)
        trainer.resume()
        self.assertEqual(trainer.run().weights_hash, self.trainer(epochs=2, folder="2").run().weights_hash)

    def test_reduce_the_rate_on_a_plateau(self):
        plateau = skiff.ReduceOnPlateau(factor=0.5, patience=0, threshold=1e6)
        rates = [record["learning_rate"] for record in self.trainer(plateau, epochs=3).run().records]
        self.assertEqual([rate / rates[0] for rate in rates], [1, 1, 0.5])
        scope = skiff.Scope()
        scope["rate"] = numpy.float32([1])
        plateau = skiff.ReduceOnPlateau(factor=0.25, patience=0, variable="rate")
        self.assertEqual([plateau.add(value, scope) for value in (1, 2, 0.5)], [False, True, False])
        self.assertEqual(scope["rate"], 0.25)


class StreamingMetrics(unittest.TestCase):
    def test_are_those_of_numpy(self):
        random = numpy.random.default_rng(0)
        scores, labels = random.random((50, 3)), random.integers(0, 3, (50, 1))
        matrix, top, auc = skiff.ConfusionMatrix(3), skiff.TopKAccuracy(2), skiff.Auc()
        for begin in range(0, 50, 20):
            batch = scores[begin:begin + 20], labels[begin:begin + 20]
            matrix.add(*batch)
            top.add(*batch)
            auc.add(batch[0][:, 0], (batch[1] == 0).astype("int64"))
        counts = [[int(((labels[:, 0] == i) & (scores.argmax(1) == k)).sum()) for k in range(3)] for i in range(3)]
        self.assertEqual(matrix.counts, counts)
        self.assertEqual(matrix.precision(1), counts[1][1] / sum(row[1] for row in counts))
        self.assertEqual(matrix.recall(1), counts[1][1] / sum(counts[1]))
        self.assertAlmostEqual(matrix.value, sum(matrix.f1(i) for i in range(3)) / 3)
        self.assertEqual(top.value, (numpy.argsort(scores)[:, 1:] == labels).any(1).mean())
        ones, zeros = scores[labels[:, 0] == 0, 0], scores[labels[:, 0] != 0, 0]
        self.assertAlmostEqual(auc.value, (ones[:, None] > zeros).mean())
        perplexity = skiff.Perplexity()
        perplexity.add(numpy.float32(2), numpy.int64([3]))
        self.assertAlmostEqual(perplexity.value, numpy.exp(2))
        with self.assertRaises(skiff.OutOfRangeError):
            matrix.add(scores[:1], [[3]])
        with self.assertRaisesRegex(skiff.InvalidArgumentError, "expected one of accuracy"):
            skiff.ConfusionMatrix(3, value="typo")

    def test_stand_in_the_records_of_a_trainer(self):
        with tempfile.TemporaryDirectory() as folder:
            arguments = programs()
            scores, = arguments["model_outputs"]
            arguments["metrics"].append(skiff.Metric("f1", streaming=skiff.ConfusionMatrix(3), larger_is_better=True,
                                                     streamed=[scores, "label"]))
            arguments["decisive_metric"] = "f1"
            result = skiff.Trainer(**arguments, train=array_reader(), validation=array_reader(),
                                   output_dir=os.path.join(folder, "run")).run()
            self.assertEqual(result.best_value, result.records[0]["validation"]["f1"])
            self.assertNotIn("f1", result.records[0]["train"])


class Half(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "run")

    def trainer(self, arguments, **options):
        return skiff.Trainer(**arguments, train=array_reader(), validation=array_reader(), output_dir=self.folder,
                             **options)

    def saved_dtype(self):
        """Returns the dtype of the weights in the saved model."""
        scope = skiff.Scope()
        skiff.load_inference_model(os.path.join(self.folder, "model"), scope)
        return scope.tensor("fc_0.w_0").dtype

    def test_is_asked_of_minimize(self):
        for precision, expected in (
                ("float32", None),
                ("bfloat16", "bfloat16: .* 2 of 2 parameters"),
                (skiff.PrecisionOptions(dtype="bfloat16", level="casts"), "bfloat16: .* 0 of 2 parameters"),
                (skiff.PrecisionOptions(dtype="float16", keep_float32=["mul"]), "float16: .*mul \\(1\\)")):
            minimized = []
            programs(precision, minimized)
            with self.subTest(expected):
                if expected is None:
                    self.assertIsNone(minimized[0].half)
                else:
                    self.assertRegex(str(minimized[0].half), expected)
        with self.assertRaisesRegex(skiff.NotFoundError, 'keep_float32 has "nothing"'):
            programs(skiff.PrecisionOptions(dtype="bfloat16", keep_float32=["nothing"]))

    def test_reports_why(self):
        minimized = []
        programs(skiff.PrecisionOptions(dtype="bfloat16", keep_float32=["mul"]), minimized)
        text, *reasons = minimized[0].half.details().splitlines()
        self.assertEqual(text, str(minimized[0].half))
        self.assertIn("float32: mul, since keep_float32 has it", "\n".join(reasons))

    def test_scales_the_loss(self):
        for scaling, scale, is_dynamic in ((None, 65536, True), (skiff.LossScaling(initial=256), 256, True),
                                           (skiff.LossScaling(initial=1024, is_dynamic=False), 1024, False)):
            options = {} if scaling is None else {"loss_scaling": scaling}
            arguments = programs(skiff.PrecisionOptions(dtype="float16", **options))
            executor = skiff.Executor()
            executor.run(arguments["startup"])
            with self.subTest(scale):
                self.assertEqual(executor.scope["loss_scaling_0"], scale)
                self.assertEqual("num_good_steps_0" in executor.scope, is_dynamic)

    def test_trains_and_saves_float32(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            result = self.trainer(programs("bfloat16"), epochs=2).run()
        self.assertLess(result.records[1]["train"]["loss"], result.records[0]["train"]["loss"])
        self.assertIn("bfloat16: 2 of 2 parameters\n", out.getvalue())
        self.assertEqual(self.saved_dtype(), "float32")

    def test_saves_half_if_asked(self):
        arguments = programs("bfloat16")
        arguments["model"] = arguments["test"]
        self.trainer(arguments).run()
        self.assertEqual(self.saved_dtype(), "bfloat16")

    def test_needs_a_model_and_a_test_program_in_half(self):
        for argument, value, message in (
                ("model", None, "there is no model: .* a clone made before minimize"),
                ("test", programs()["test"], 'parameter "fc_0.[bw]_0" of the test program is float32, expected bfloat16 '
                                             'as in the main program: clone the test program after minimize')):
            with self.subTest(argument), self.assertRaisesRegex(skiff.InvalidArgumentError, message):
                self.trainer(dict(programs("bfloat16"), **{argument: value}))

    def test_resumes_in_no_other_precision(self):
        self.trainer(programs()).run()
        for precision in ("bfloat16", skiff.PrecisionOptions(dtype="bfloat16", level="casts")):
            with self.assertRaisesRegex(skiff.InvalidArgumentError,
                                        "made with precision = float32, but now it is bfloat16"):
                self.trainer(programs(precision)).resume()
        self.trainer(programs(), epochs=2).resume()


class RaggedFeeds(unittest.TestCase):
    def test_count_sequences_as_samples(self):
        main, startup = skiff.Program(), skiff.Program()
        with skiff.program_guard(main, startup):
            x = layers.data("x", [-1, 1], lod_level=2)
            zero = layers.fc(x, 1, param_attr=skiff.ParamAttr(initializer=skiff.initializer.constant(0.0)))
            loss = layers.mean(layers.elementwise_add(x, zero))
            test = main.clone_for_test()
            rate = skiff.learning_rate.constant(0.1)
            skiff.optimizer.Sgd(learning_rate=rate).minimize(loss)

        def batches(_):
            # One sequence of two with one and three rows; three sequences of one with a row each.
            yield {"x": skiff.Tensor(numpy.zeros((4, 1), "float32"), lod=[[0, 2], [0, 1, 4]])}
            yield {"x": skiff.Tensor(numpy.full((3, 1), 4, "float32"), lod=[[0, 1, 2, 3], [0, 1, 2, 3]])}
        with tempfile.TemporaryDirectory() as folder:
            trainer = skiff.Trainer(
                main=main, startup=startup, test=test, loss=loss, learning_rate=rate, model_inputs=[x],
                model_outputs=[zero], train=skiff.IterableReader(batches, 2),
                validation=skiff.IterableReader(batches, 2), output_dir=os.path.join(folder, "run"))
            self.assertEqual(trainer.evaluate(), {"loss": 3.0})


class Averages(unittest.TestCase):
    def test_replace_values_for_a_while(self):
        main, startup = skiff.Program(), skiff.Program()
        with skiff.program_guard(main, startup):
            y = layers.fc(layers.data("x", [-1, 1]), 1, bias_attr=None, param_attr=skiff.ParamAttr(
                name="w", initializer=skiff.initializer.constant(0.0)))
            loss = layers.mean(y)
            skiff.optimizer.Sgd(learning_rate=1.0).minimize(loss)
            average = skiff.optimizer.ModelAverage(average_window_rate=1.0)
        executor = skiff.Executor()
        executor.run(startup)
        step = executor.compile(main)
        self.assertEqual(average.variables(), ["w"])
        values = skiff.averaged(executor, average)
        with self.assertRaises(skiff.FailedPreconditionError):
            values.__enter__()
        for _ in range(3):
            step.run({"x": numpy.ones((1, 1), "float32")}, [loss])
        with values:
            self.assertEqual(executor.scope["w"], -2)
            with self.assertRaises(skiff.FailedPreconditionError):
                step.run({"x": numpy.ones((1, 1), "float32")}, [loss])
        self.assertEqual(executor.scope["w"], -3)


if __name__ == "__main__":
    unittest.main()
