"""Tests that the comparisons with PaddlePaddle find differences. Needs no PaddlePaddle."""
import os
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError as error:
    raise unittest.SkipTest("NumPy isn't installed, which the comparisons use") from error

HERE = os.path.abspath("tests/oracle")
sys.path.insert(0, HERE)

# pylint: disable=wrong-import-position
import children
from check_ops_in_paddle import KnownDifferences, Tally, judge, same_shape
from compare_with_paddle import compare
from comparison import INFINITE, compare_arrays, compare_rounding, largest_difference, series_difference

INF, NAN = np.inf, np.nan


def array(*values, dtype=np.float64):
    return np.array(values, dtype)


class LargestDifference(unittest.TestCase):
    def test_is_relative_to_the_largest_magnitude(self):
        self.assertAlmostEqual(largest_difference(array(1.5, -8.0), array(1.0, -8.0)), 0.5 / 8)
        self.assertAlmostEqual(largest_difference(array(1.0, 8.0), array(1.0, -8.0)), 2.0)

    def test_of_equal_arrays_is_zero(self):
        for values in ((1.0, INF, NAN), (), (0.0, -INF), (NAN,)):
            self.assertEqual(largest_difference(array(*values), array(*values)), 0.0)

    def test_is_infinite_where_there_is_nothing_to_compare_with(self):
        self.assertEqual(largest_difference(None, array(1.0)), INFINITE)
        self.assertEqual(largest_difference(array(1.0), None), INFINITE)
        self.assertEqual(largest_difference(None, None), INFINITE)

    def test_is_infinite_for_another_shape_or_dtype(self):
        self.assertEqual(largest_difference(array(1.0), np.array(1.0)), INFINITE)
        self.assertEqual(largest_difference(array(1.0), array(1.0, 1.0)), INFINITE)
        self.assertEqual(largest_difference(array(1.0), array(1.0, dtype=np.float32)), INFINITE)
        self.assertEqual(largest_difference(array(1, dtype=np.int32), array(1, dtype=np.int64)), INFINITE)

    def test_is_infinite_for_other_places_of_what_is_not_finite(self):
        for found, expected in (((1.0, NAN), (1.0, 2.0)), ((1.0, 2.0), (1.0, NAN)), ((INF, 1.0), (-INF, 1.0)),
                                ((NAN, 1.0), (INF, 1.0)), ((NAN,), (0.0,)), ((INF,), (NAN,))):
            self.assertEqual(largest_difference(array(*found), array(*expected)), INFINITE, (found, expected))

    def test_still_sees_the_rest_beside_infinities(self):
        self.assertAlmostEqual(largest_difference(array(INF, 1.1), array(INF, 1.0)), 0.1)

    def test_is_infinite_for_other_integers_and_where_zeros_were_expected(self):
        self.assertEqual(largest_difference(array(1000001, dtype=np.int64), array(1000000, dtype=np.int64)), INFINITE)
        self.assertEqual(largest_difference(array(True, dtype=bool), array(False, dtype=bool)), INFINITE)
        self.assertEqual(largest_difference(array(1e-30), array(0.0)), INFINITE)


class SeriesDifference(unittest.TestCase):
    def test_is_relative_to_each_number(self):
        self.assertAlmostEqual(series_difference([100.0, 0.11], [100.0, 0.1]), 0.1)
        self.assertEqual(series_difference([0.0, 2.0], [0.0, 2.0]), 0.0)

    def test_is_infinite_where_a_step_or_all_is_missing(self):
        for found, expected in ((None, [1.0]), ([1.0], None), ([], []), ([1.0], [1.0, 1.0]), ([1.0, 1.0], [1.0])):
            self.assertEqual(series_difference(found, expected), INFINITE)

    def test_is_infinite_for_what_is_not_finite_and_for_an_unexpected_zero(self):
        for found, expected in (([NAN], [NAN]), ([INF], [INF]), ([1.0], [NAN]), ([0.1], [0.0])):
            self.assertEqual(series_difference(found, expected), INFINITE)


class CompareArrays(unittest.TestCase):
    def test_names_what_is_beyond_the_bound(self):
        found, expected = {"w": array(1.0), "b": array(1.0)}, {"w": array(1.0), "b": array(2.0)}
        worst, problems = compare_arrays("gradient", found, expected, 0.499)
        self.assertEqual(worst, 0.5)
        self.assertEqual(len(problems), 1)
        self.assertIn("gradient b differs by 5.0e-01", problems[0])
        self.assertEqual(compare_arrays("gradient", found, expected, 0.5), (0.5, []))

    def test_misses_an_array_on_either_side(self):
        for found, expected in (({}, {"w": array(1.0)}), ({"w": array(1.0)}, {}), ({"w": None}, {"w": array(1.0)})):
            worst, problems = compare_arrays("state", found, expected, 1e9)
            self.assertEqual(worst, INFINITE)
            self.assertIn("missing", problems[0])

    def test_of_nothing_is_a_problem(self):
        self.assertEqual(compare_arrays("state", {}, {}, 1.0), (INFINITE, ["state: there is none"]))


class CompareRounding(unittest.TestCase):
    def problems(self, size):
        return compare_rounding({"w": array(-2.0), "b": array(0.0, size)}, {"b"}, {"w", "b"}, 1e-3)

    def test_names_what_is_not_small_beside_the_largest_gradient(self):
        self.assertEqual(self.problems(-2e-3), [])
        self.assertIn("b should be zero but for rounding: it is up to 2.1e-03", self.problems(-2.1e-3)[0])
        self.assertEqual(len(self.problems(NAN)), 1)


class ReverseComparison(unittest.TestCase):
    """Tests compare_with_paddle on a folder with the files of both frameworks."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ["TEST_TMPDIR"])
        self.arrays = {"skiff.npz": {"loss": array(1.0), "loss.steps": array(2.0, 1.0)},
                       "paddle.npz": {"loss": array(2.0, 1.0)},
                       "skiff_params.npz": {"w": array(3.0)},
                       "paddle_params.npz": {"w": array(3.0)}}

    def problems(self, watched=("loss",), dtype="float64"):
        for name in os.listdir(self.folder):
            os.remove(os.path.join(self.folder, name))
        for name, arrays in self.arrays.items():
            np.savez(os.path.join(self.folder, name), **arrays)
        return compare(self.folder, {"dtype": dtype, "watched": list(watched), "fused": ["f"]})[2]

    def test_accepts_equal_runs(self):
        self.assertEqual(self.problems(), [])

    def test_asks_more_of_losses_than_of_the_state_in_float32(self):
        self.arrays["skiff_params.npz"]["w"] = array(3.0 * (1 + 9e-4))
        self.assertEqual(self.problems(dtype="float32"), [])
        self.arrays["skiff.npz"]["loss.steps"] = array(2.0, 1.0 + 9e-5)
        self.assertEqual(self.problems(dtype="float32"), [])
        self.arrays["skiff.npz"]["loss.steps"] = array(2.0, 1.0 + 2e-4)
        self.assertEqual(len(self.problems(dtype="float32")), 1)

    def test_refuses_another_loss_or_a_missing_step(self):
        for steps in (array(2.0, 1.0 + 2e-9), array(2.0)):
            self.arrays["skiff.npz"]["loss.steps"] = steps
            self.assertEqual(len(self.problems()), 1)
        del self.arrays["skiff.npz"]["loss.steps"]
        self.assertEqual(len(self.problems()), 1)

    def test_refuses_another_parameter_and_a_missing_one(self):
        self.arrays["skiff_params.npz"]["w"] = array(3.0 + 1e-8)
        self.assertEqual(len(self.problems()), 1)
        self.arrays["skiff_params.npz"] = {}
        self.assertEqual(len(self.problems()), 1)

    def test_leaves_out_what_is_fused(self):
        self.arrays["skiff_params.npz"]["f"] = array(1.0)
        self.arrays["paddle_params.npz"]["f"] = array(2.0)
        self.assertEqual(self.problems(), [])

    def test_refuses_what_skiff_did_not_run(self):
        for name in ("skiff.npz", "skiff_params.npz"):
            kept = self.arrays.pop(name)
            self.assertIn("Skiff did not run it", self.problems()[0])
            self.arrays[name] = kept

    def test_refuses_to_watch_nothing(self):
        self.assertEqual(self.problems(watched=()), ["no series is watched"])


class OpCases(unittest.TestCase):
    """judge and KnownDifferences of check_ops_in_paddle."""

    def setUp(self):
        self.known = KnownDifferences(["# a comment\n", "\n", "add.loose.*  <=1e-2  rounds\n",
                                       "add.odd*  Out.0,Y.0  odd\n", "add.taken.*  refused  no\n",
                                       "add.half.*  gradient_refused  no\n", "add.left.*  skiff_refused  not yet\n"])
        self.tally = Tally()

    def judge(self, case, result, empty=False, outputs=("Out.0",)):
        description = {"name": "add.%s.float64" % case, "dtype": "float64", "empty": empty, "outputs": list(outputs)}
        return judge(description, result, self.known, self.tally)

    def test_a_difference_within_the_bound_is_the_same(self):
        self.assertEqual(self.judge("plain", {"differences": {"Out.0": 1e-12}, "problems": []}), "")
        self.assertEqual(dict(self.tally.counts), {"same": 1})
        self.assertEqual(self.tally.largest["float64"], 1e-12)

    def test_a_difference_beyond_the_bound_is_wrong(self):
        for difference in (1e-3, INFINITE, NAN):
            self.assertIn("Out.0 differs", self.judge("plain", {"differences": {"Out.0": difference}, "problems": []}))
        self.assertEqual(dict(self.tally.counts), {"wrong": 3})

    def test_a_known_difference_covers_what_it_names_and_no_more(self):
        self.assertEqual(self.judge("odd_one", {"differences": {"Out.0": INFINITE}}), "")
        self.assertIn("X.0 differs", self.judge("odd_one", {"differences": {"Out.0": 1.0, "X.0": 1.0}}))
        self.assertEqual(self.judge("loose", {"differences": {"Out.0": 1e-3}}), "")
        self.assertIn("Out.0 differs", self.judge("loose", {"differences": {"Out.0": 1e-1}}))
        self.assertEqual(dict(self.tally.counts), {"known": 2, "wrong": 2})

    def test_each_refusal_is_a_kind_of_its_own(self):
        self.assertEqual(self.judge("taken", {"refused": "why"}), "")
        self.assertEqual(self.judge("half", {"gradient_refused": "why", "differences": {"Out.0": 0.0}}), "")
        self.assertEqual(self.judge("left", {"skiff_refused": True}), "")
        for case, kind in (("plain", "refused"), ("half", "refused"), ("taken", "gradient_refused"),
                           ("taken", "skiff_refused"), ("left", "refused")):
            self.assertIn(kind, self.judge(case, {kind: "why"}))

    def test_the_forward_pass_counts_where_the_gradient_is_refused(self):
        self.assertIn("Out.0 differs", self.judge("half", {"gradient_refused": "why", "differences": {"Out.0": 1.0}}))

    def test_only_paddle_may_refuse_a_case_without_elements(self):
        self.assertEqual(self.judge("plain", {"refused": "why"}, empty=True), "")
        self.assertIn("skiff_refused", self.judge("plain", {"skiff_refused": True}, empty=True))
        self.assertIn("Out.0 differs", self.judge("plain", {"differences": {"Out.0": 1.0}}, empty=True))

    def test_a_case_that_compares_nothing_is_wrong(self):
        self.assertEqual(self.judge("plain", {"differences": {}, "problems": []}), "nothing was compared")

    def test_an_op_without_outputs_is_the_same_where_both_take_it(self):
        self.assertEqual(self.judge("plain", {"differences": {}, "problems": []}, outputs=()), "")
        self.assertIn("refused", self.judge("plain", {"refused": "why"}, outputs=()))

    def test_what_is_wrong_with_the_program_is_wrong(self):
        self.assertEqual(self.judge("odd_one", {"differences": {"Out.0": 1.0}, "problems": ["no slot Z"]}), "no slot Z")

    def test_an_entry_that_no_case_needs_is_told_if_its_op_ran(self):
        self.judge("loose", {"differences": {"Out.0": 1e-3}})
        self.assertEqual([entry[0] for entry in self.known.stale(["add"])],
                         ["add.odd*", "add.taken.*", "add.half.*", "add.left.*"])
        self.assertEqual(self.known.stale(["subtract"]), [])

    def test_the_file_of_known_differences_gives_a_reason_for_each(self):
        with open(os.path.join(HERE, "known_differences.txt"), encoding="utf-8") as f:
            entries = KnownDifferences(f).entries
        self.assertGreater(len(entries), 10)
        for entry in entries:
            self.assertEqual(len(entry), 3, entry)
            self.assertTrue(entry[2].strip(), entry)


    def test_counts_what_is_the_same_in_other_ops(self):
        for difference in (0.0, 1.0):
            self.judge("plain", {"differences": {"Out.0": difference}, "spelled_out": True})
        self.assertEqual(dict(self.tally.counts), {"same": 1, "spelled_out": 1, "wrong": 1})


class Children(unittest.TestCase):
    # Program 1 aborts, 3 hangs, and 5 is a mistake of the script.
    SCRIPT = """
import os, sys, time
sys.path.insert(0, %r)
import children
def result(i):
    if i == 1: os.abort()
    if i == 3: time.sleep(60)
    if i == 5: raise KeyError("five")
    return {"number": i}
children.report(result(i) for i in range(int(sys.argv[2].partition("=")[2]), int(sys.argv[1])))
""" % HERE

    def run_script(self, count):
        with tempfile.NamedTemporaryFile("w", suffix=".py", dir=os.environ["TEST_TMPDIR"]) as script:
            script.write(self.SCRIPT)
            script.flush()
            return children.run_all(script.name, str(count), count, 8)

    def test_are_started_anew_after_a_program_that_ends_them(self):
        results = self.run_script(5)
        self.assertEqual([r.get("number") for r in results], [0, None, 2, None, 4])
        self.assertIn("exit status -6", results[1]["refused"])
        self.assertIn("exit status -9", results[3]["refused"])

    def test_tell_the_mistakes_of_the_script(self):
        with self.assertRaisesRegex(SystemExit, "five"):
            self.run_script(6)


class GradientOps(unittest.TestCase):
    THEIRS = ("mul_grad", {"X": ["x"], "Out@GRAD": ["d"]}, {"X@GRAD": ["dx"], "Y@GRAD": ["dy"]})

    def test_may_leave_out_gradients_that_nobody_wants(self):
        self.assertTrue(same_shape(self.THEIRS, self.THEIRS))
        self.assertTrue(same_shape((*self.THEIRS[:2], {"X@GRAD": ["dx"]}), self.THEIRS))
        self.assertTrue(same_shape((*self.THEIRS[:2], {"X@GRAD": ["dx"], "Y@GRAD": ["@EMPTY@"]}), self.THEIRS))

    def test_have_the_type_slots_and_variables_of_paddle(self):
        for other in (("add_grad", *self.THEIRS[1:]), ("mul_grad", {"X": ["x"]}, self.THEIRS[2]),
                      (*self.THEIRS[:2], {"X@GRAD": ["dy"]}), (*self.THEIRS[:2], {"Z@GRAD": ["dx"]})):
            self.assertFalse(same_shape(other, self.THEIRS), other)
