"""Tests programs and layers in Python: what is appended, what is refused, what lives how long."""
import gc
import inspect
import threading
import unittest
import warnings

import numpy

from tests.python_stub.package import skiff

layers = skiff.layers


def line():
    """The line of the caller."""
    return inspect.currentframe().f_back.f_lineno


class Building(unittest.TestCase):
    def setUp(self):
        self.main, self.startup = skiff.Program(), skiff.Program()
        guard = skiff.program_guard(self.main, self.startup)
        guard.__enter__()
        self.addCleanup(guard.__exit__)

    def refused(self, exception, call):
        with self.assertRaises(exception) as raised:
            call()
        return str(raised.exception)


class Layers(Building):
    def test_append_ops_with_their_line(self):
        x = layers.data("x", [-1, 4])
        with skiff.name_scope("head"):
            y, made = layers.fc(x, 3, act="relu", name="f"), line()
        ops = self.main.block().ops
        self.assertEqual([op.type for op in ops], ["mul", "elementwise_add", "relu"])
        self.assertEqual({op.site for op in ops}, {(__file__, made)})
        self.assertEqual({op.attrs["op_namescope"] for op in ops}, {"/head/"})
        self.assertEqual(ops[0].inputs, {"X": ["x"], "Y": ["f.w_0"]})
        self.assertEqual(self.main.parameters, ["f.b_0", "f.w_0"])
        self.assertEqual((y.name, y.shape, y.dtype), (ops[2].outputs["Out"][0], (-1, 3), "float32"))
        self.assertEqual([op.type for op in self.startup.block().ops], ["uniform_random", "fill_constant"])

    def test_take_options_by_name(self):
        x = layers.data("x", [-1, 3, 8, 8])
        layers.conv2d(x, filters=2, kernel=(3, 1), stride=numpy.int32(2), padding=[1, 0], bias_attr=None)
        conv = self.main.block().ops[0]
        self.assertEqual([conv.attrs[name] for name in ("strides", "paddings")], [[2, 2], [1, 0]])
        self.assertEqual(self.main.block().var(conv.inputs["Filter"][0]).shape, (2, 3, 3, 1))
        self.assertEqual(len(self.main.block().ops), 1)

    def test_have_no_bias_if_it_is_false_or_none(self):
        x = layers.data("x", [-1, 4])
        for name, bias in (("false", False), ("none", None), ("true", True), ("default", skiff.ParamAttr())):
            layers.fc(x, 2, bias_attr=bias, name=name)
        self.assertEqual([name for name in self.main.parameters if ".b_" in name], ["default.b_0", "true.b_0"])

    def test_take_parameters_with_attributes(self):
        attr = skiff.ParamAttr(name="w", initializer=skiff.initializer.constant(2.0), learning_rate=0.5,
                               regularizer=skiff.l2_decay(0.1))
        layers.fc(layers.data("x", [-1, 4]), 2, param_attr=attr, bias_attr=None)
        self.assertEqual(self.main.block().var("w").attrs["regularizer"], "l2_decay 0.1")
        shared = self.main.block().variable("w")
        layers.fc(layers.data("z", [-1, 4]), 2, param_attr=skiff.ParamAttr(shared=shared), bias_attr=None)
        self.assertEqual(self.main.parameters, ["w"])

    def test_choose_overloads_by_type(self):
        x, y = layers.data("x", [-1, 4]), layers.data("y", [-1, 4])
        self.assertEqual(layers.fc([x, y], 2).shape, (-1, 2))
        for values, dtype in (([1, 2], "int64"), ([1.0, 2], "float32"), (numpy.array([1, 2], "float64"), "float64"),
                              (numpy.array([[1], [2]], "int32"), "int32")):
            self.assertEqual(layers.assign_value([2], values).dtype, dtype)

    def test_take_dtypes_as_numpy_does(self):
        x = layers.data("x", [-1, 4], numpy.int64)
        for dtype in ("float64", numpy.float64, numpy.dtype("float64"), float):
            self.assertEqual(layers.cast(x, dtype).dtype, "float64")

    def test_return_lists_and_named_tuples(self):
        x = layers.data("x", [-1, 4])
        self.assertEqual([part.shape for part in layers.split(x, 2, axis=1)], [(-1, 2)] * 2)
        values, indices = layers.top_k(x, 2)
        self.assertEqual((values.dtype, indices.dtype), ("float32", "int64"))
        self.assertIsInstance(layers.top_k(x, 1), layers.TopKResult)
        self.assertIsNone(layers.assert_(layers.less_than(layers.mean(x), layers.mean(x)), [x]))

    def test_are_there_for_operators(self):
        x = layers.data("x", [-1, 4])
        y, made = 1 - (-x + 2.0) * x / 3, line()
        self.assertEqual([op.type for op in self.main.block().ops],
                         ["scale", "scale", "elementwise_mul", "scale", "scale"])
        self.assertEqual(self.main.block().ops[-1].site, (__file__, made))
        self.assertEqual(y.shape, (-1, 4))
        with self.assertRaises(TypeError):
            x + "y"

    def test_compare_with_variables_and_numbers(self):
        x = layers.data("x", [-1, 4])
        for holds in (x < x, x <= 1, x > 0.5, 2 >= x, layers.equal(x, 3), layers.where(x > 0, 1.0, 0.0) > x):
            self.assertEqual((holds.dtype, holds.shape), ("bool", (-1, 4)))
        self.assertEqual(layers.where(x < 0, 0, x).shape, (-1, 4))
        with self.assertRaisesRegex(TypeError, 'Variable "x" has no truth value: a run computes it'):
            bool(x)

    def test_have_signatures_and_docs(self):
        self.assertEqual(str(inspect.signature(layers.softmax)), "(x, axis=-1)")
        parameters = inspect.signature(layers.pool2d).parameters
        self.assertEqual((parameters["type"].kind, parameters["type"].default),
                         (inspect.Parameter.KEYWORD_ONLY, "max"))
        self.assertIn("Raises InvalidArgumentError if p isn't in [0, 1].", inspect.getdoc(layers.dropout))
        self.assertIn("  is_test: normalises by the moving statistics", inspect.getdoc(layers.batch_norm))
        # That of the op, since the declaration has no comment of its own.
        self.assertIn("Out = |X|.", inspect.getdoc(layers.abs))
        for name, function in vars(layers).items():
            if not name.startswith("_") and callable(function):
                self.assertGreater(len(inspect.getdoc(function) or ""), 5, name)


class Refusals(Building):
    def test_of_arguments_say_what_was_expected(self):
        x = layers.data("x", [-1, 4])
        for call, message in (
                (lambda: layers.relu(), 'relu(x): the argument "x" is missing'),
                (lambda: layers.relu(x, x), "relu(x): found 2 arguments without a name, expected at most 1"),
                (lambda: layers.relu(x, y=1), 'relu(x): there is no argument "y"'),
                (lambda: layers.relu(x, x=x), 'relu(x): the argument "x" is given twice'),
                (lambda: layers.relu(3), "relu: x is int 3, expected a Variable"),
                (lambda: layers.softmax(x, 1.5), "softmax: axis is float 1.5, expected a whole number of 64 bits"),
                (lambda: layers.softmax(x, True), "softmax: axis is bool True, expected a whole number of 64 bits"),
                (lambda: layers.softmax(x, 2**70),
                 f"softmax: axis is int {2**70}, expected a whole number of 64 bits"),
                (lambda: layers.dropout(x, seed=2**31),
                 "dropout: seed is int 2147483648, expected a whole number of 32 bits"),
                (lambda: layers.gelu(x, 1), "gelu: approximate is int 1, expected True or False"),
                (lambda: layers.elu(x, "1"), "elu: alpha is str '1', expected a number"),
                (lambda: layers.pool2d(x, kernel=(1, 2, 3)),
                 "pool2d: kernel is tuple (1, 2, 3), expected a whole number or two of them"),
                (lambda: layers.pool2d(x, type=1), "pool2d: type is int 1, expected a text"),
                (lambda: layers.reshape(x, "ab"),
                 "reshape: dims is str 'ab', expected a list of whole numbers of 64 bits"),
                (lambda: layers.concat([x, 1]), None),
                (lambda: layers.batch_norm(x, param_attr=None),
                 "batch_norm: param_attr is NoneType None, expected a ParamAttr"),
                (lambda: skiff.optimizer.LarsMomentum(policy="all"),
                 'LarsMomentum: policy is str \'all\', expected one of "decay_and_norms", "norms"'),
                (lambda: skiff.optimizer.AdamW(lr_ratio=1), "AdamW: lr_ratio is int 1, expected a function")):
            with self.subTest(message):
                found = self.refused(TypeError, call)
                if message:
                    self.assertEqual(found, message)
        self.assertEqual(len(self.main.block().ops), 0)

    def test_of_overloads_name_them_all(self):
        self.assertEqual(self.refused(TypeError, lambda: layers.fc(1, 2)),
                         "fc: x is int 1, expected a Variable; or fc: xs is int 1, expected a list of Variables")

    def test_have_the_text_of_cpp_and_the_line_of_the_caller(self):
        x = layers.data("x", [-1, 4])
        text = self.refused(skiff.InvalidArgumentError, lambda: layers.fc(x, 0))
        self.assertEqual(text, f"{__file__}:{line() - 1}: fc: size = 0, expected a positive number")
        text = self.refused(ValueError, lambda: layers.relu(None))
        self.assertEqual(text, f"{__file__}:{line() - 1}: relu: an input is an undefined Variable")
        text = self.refused(ValueError, lambda: skiff.optimizer.Adam(beta1=1.0))
        self.assertRegex(text, rf"^{__file__}:{line() - 1}: adam: beta1 = 1, expected ")
        text = self.refused(skiff.InvalidArgumentError, lambda: layers.cast(x, "float99"))
        self.assertIn("float99", text)

    def test_are_of_the_class_of_their_code(self):
        for name, builtin in (("InvalidArgument", ValueError), ("NotFound", KeyError), ("AlreadyExists", ValueError),
                              ("OutOfRange", IndexError), ("FailedPrecondition", RuntimeError),
                              ("Unimplemented", NotImplementedError), ("ResourceExhausted", MemoryError),
                              ("DataLoss", ValueError), ("Io", OSError)):
            error = getattr(skiff, name + "Error")
            self.assertTrue(issubclass(error, skiff.Error) and issubclass(error, builtin))
            self.assertEqual(str(error("a 'text'")), "a 'text'")
        with self.assertRaises(KeyError) as raised:
            self.main.block().var("nothing")
        self.assertIsInstance(raised.exception, skiff.NotFoundError)
        self.assertEqual(raised.exception.code, "NOT_FOUND")
        self.assertIn('"nothing"', str(raised.exception))


class Programs(Building):
    def test_go_through_text_and_bytes(self):
        layers.fc(layers.data("x", [-1, 4]), 2)
        self.main.seed = 5
        self.assertEqual(skiff.Program.from_text(str(self.main)), self.main)
        self.assertEqual(skiff.Program.from_bytes(self.main.to_bytes()).to_bytes(), self.main.to_bytes())
        self.assertNotEqual(self.main, self.startup)
        self.assertTrue(self.main.dot().startswith("digraph"))
        with self.assertRaises(skiff.DataLossError):
            skiff.Program.from_bytes(b"\xff\xfe")
        with self.assertRaises(skiff.InvalidArgumentError):
            skiff.Program.from_text("program {")

    def test_are_cloned_and_pruned(self):
        x = layers.data("x", [-1, 4])
        y = layers.fc(layers.dropout(x), 2)
        loss = layers.mean(y)
        pairs = skiff.optimizer.Sgd(learning_rate=0.1).minimize(loss, parameters=["fc_0.w_0"]).trained
        self.assertEqual([(p.parameter.name, p.gradient.name) for p in pairs], [("fc_0.w_0", "fc_0.w_0@GRAD")])
        self.assertEqual(self.main.clone(), self.main)
        test = self.main.clone_for_test()
        self.assertEqual([op.type for op in test.block().ops], ["dropout", "mul", "elementwise_add", "mean"])
        self.assertTrue(test.block().ops[0].attrs["is_test"])
        self.assertEqual([op.type for op in test.prune([x], [y]).block().ops], ["dropout", "mul", "elementwise_add"])
        with self.assertRaises(skiff.OutOfRangeError):
            self.main.block(1)

    def test_warn_of_variables_that_are_not_marked_as_parameters(self):
        loss = layers.mean(layers.fc(layers.fc(layers.data("x", [-1, 4]), 3), 2, bias_attr=None)).name
        text = str(self.main)
        for name in ("fc_0.b_0", "fc_0.w_0"):
            text = text.replace('param "%s"' % name, 'var "%s"' % name)
        main = skiff.Program.from_text(text)
        before = main.clone()
        with skiff.program_guard(main, self.startup):
            loss = main.block().variable(loss)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                with self.assertRaisesRegex(UserWarning, "1 parameters are trained, but not these 2 variables"):
                    skiff.optimizer.Sgd().minimize(loss)
            self.assertEqual(main, before)
            with self.assertWarnsRegex(UserWarning, r"program_test.py:\d+: minimize: .*: fc_0.b_0, fc_0.w_0;"):
                minimized = skiff.optimizer.Sgd().minimize(loss)
        self.assertEqual([pair.parameter.name for pair in minimized.trained], ["fc_1.w_0"])
        self.assertEqual(minimized.left, ["fc_0.b_0", "fc_0.w_0"])

    def test_warn_of_names_that_are_no_utf8(self):
        loss = layers.mean(layers.fc(layers.fc(layers.data("x", [-1, 4]), 3), 2, bias_attr=None)).name
        unmarked = skiff.Program.from_text(str(self.main).replace('param "fc_0.w_0"', 'var "fc_0.w_0"'))
        main = skiff.Program.from_bytes(unmarked.to_bytes().replace(b"fc_0.w_0", b"fc_0.w_\xff"))
        with skiff.program_guard(main, self.startup), warnings.catch_warnings():
            warnings.simplefilter("error")
            with self.assertRaisesRegex(UserWarning, "fc_0.w_\ufffd"):
                skiff.optimizer.Sgd().minimize(main.block().variable(loss))

    def test_name_lines_of_a_file_whose_name_is_no_utf8(self):
        code = compile('layers.fc(x, 3, act="nothing")', "a\udcff.py", "exec")
        self.assertIn("a?.py:1", self.refused(
            skiff.Error, lambda: exec(code, {"layers": layers, "x": layers.data("x", [-1, 4])})))

    def test_describe_variables(self):
        layers.data("ids", [-1, 1], "int64", lod_level=1)
        var = self.main.block().vars[0]
        self.assertEqual((var.name, var.kind, var.dtype, var.shape, var.lod_level, var.persistable, var.stop_gradient),
                         ("ids", "lod_tensor", "int64", (-1, 1), 1, False, True))
        variable = self.main.block().variable("ids")
        variable.stop_gradient = False
        self.assertFalse(self.main.block().var("ids").stop_gradient)
        self.assertEqual(variable, self.main.block().variable("ids"))
        self.assertEqual(len({variable, self.main.block().variable("ids")}), 1)
        self.assertEqual(repr(variable), 'Variable("ids", int64, [-1, 1])')

    def test_call_functions_of_python(self):
        x = layers.data("x", [-1, 4])
        asked = []
        loss = layers.mean(layers.fc(x, 2))
        skiff.optimizer.AdamW(decay_filter=lambda name: asked.append(name) or name.endswith("w_0")).minimize(loss)
        self.assertEqual(sorted(asked), ["fc_0.b_0", "fc_0.w_0"])

        def fail(name):
            raise ZeroDivisionError(name)
        loss = layers.mean(layers.fc(x, 2))
        with self.assertRaisesRegex(ZeroDivisionError, "fc_1"):
            skiff.optimizer.AdamW(lr_ratio=fail).minimize(loss)


class Guards(unittest.TestCase):
    def test_nest(self):
        outer, inner, startup = skiff.Program(), skiff.Program(), skiff.Program()
        before = skiff.default_main_program()
        with skiff.program_guard(outer, startup):
            with skiff.program_guard(inner, startup):
                layers.data("x", [1])
            layers.data("y", [1])
            self.assertEqual(str(skiff.default_main_program()), str(outer))
        self.assertEqual([v.name for v in inner.block().vars + outer.block().vars], ["x", "y"])
        self.assertIs(skiff.default_main_program(), before)

    def test_end_with_what_they_enclose(self):
        with self.assertRaises(ZeroDivisionError):
            with skiff.name_scope("a"):
                1 / 0
        main = skiff.Program()
        with skiff.program_guard(main, skiff.Program()):
            layers.abs(layers.data("x", [1]))
        self.assertNotIn("op_namescope", main.block().ops[0].attrs)

    def test_are_closed_in_order_and_by_their_thread(self):
        outer, inner = skiff.name_scope("a"), skiff.name_scope("b")
        outer.__enter__()
        inner.__enter__()
        failures = []

        def close(guard):
            try:
                guard.__exit__(None, None, None)
            except skiff.FailedPreconditionError as error:
                failures.append(str(error))
        close(outer)
        thread = threading.Thread(target=close, args=(inner,))
        thread.start()
        thread.join()
        self.assertEqual(len(failures), 2)
        with self.assertRaises(skiff.FailedPreconditionError):
            inner.__enter__()
        inner.__exit__(None, None, None)
        outer.__exit__(None, None, None)

    def test_are_refused_for_one_program_twice(self):
        program = skiff.Program()
        with self.assertRaises(skiff.InvalidArgumentError):
            with skiff.program_guard(program, program):
                pass


class Lives(unittest.TestCase):
    def test_variables_keep_their_program(self):
        def build():
            main, startup = skiff.Program(), skiff.Program()
            with skiff.program_guard(main, startup):
                x = layers.data("x", [-1, 4])
                return x, skiff.ParamAttr(shared=layers.create_parameter([2])), main.block()
        x, attr, block = build()
        gc.collect()
        self.assertEqual(x.shape, (-1, 4))
        self.assertEqual([var.name for var in block.vars], ["x", "create_parameter_0.w_0"])
        del x, block
        gc.collect()
        main = skiff.Program()
        with skiff.program_guard(main, skiff.Program()):
            with self.assertRaisesRegex(skiff.InvalidArgumentError, "default main program"):
                layers.fc(layers.data("x", [1, 2]), 1, param_attr=attr)

    def test_optimizers_keep_the_program_of_their_rate(self):
        def optimizer():
            with skiff.program_guard(skiff.Program(), skiff.Program()):
                return skiff.optimizer.Sgd(learning_rate=skiff.learning_rate.constant(0.1))
        made = optimizer()
        gc.collect()
        with skiff.program_guard(skiff.Program(), skiff.Program()):
            loss = layers.mean(layers.fc(layers.data("x", [-1, 2]), 1))
            with self.assertRaises(skiff.InvalidArgumentError):
                made.minimize(loss)

    def test_default_programs_outlive_their_thread(self):
        found = []
        thread = threading.Thread(target=lambda: found.append(layers.data("x", [-1, 3])))
        thread.start()
        thread.join()
        self.assertEqual(found[0].shape, (-1, 3))
        with self.assertRaisesRegex(skiff.InvalidArgumentError, "belongs to another program"):
            layers.relu(found[0])


if __name__ == "__main__":
    unittest.main()
