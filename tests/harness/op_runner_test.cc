// The harness finds the mistakes that it is there for: a correct tiny op passes, and each of its
// deliberately broken variants fails with a message that names the mistake.
#include "tests/harness/op_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/parallel.h"
#include "framework/op/grad.h"

namespace skiff::harness {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What is wrong with the op "twice", Out = scale * X + 0 * Hint (scale = 2 by default).
enum class Bug {
  kNone,
  kWrongValue,
  kWrongGradient,
  kWrongFloat32Gradient,
  kGradientAloneIsMissing,
  kWritesPastOutput,
  kWritesBeforeOutput,
  kWritesPastWorkspace,
  kWritesInput,
  kLeavesElementUnwritten,
  kReadsWorkspaceUnwritten,
  kInPlaceReadsAfterWrite,
  kWrongShape,
  kWrongDType,
  kShapeNotSet,
  kThrowsOnUnknownDim,
  kWrongUnknownDim,
  kNonZeroPadding,
  kReadsShapeOnlyInput,
  kAsksShapeOnlyInputForItsShape,
  kWrongDefault,
  kWrongOnTwoThreads,
  kRoundsOtherwiseOnThreeThreads,
  kWrongSecondCandidate,
  kNegativeZeros,
  kRefusesData,
  kRefusesDataAsDeclared,
  kRefusesToBeWithoutOutput,
  kDoesNotNameTheMissingOutput,
  kWritesThePreparedRows,
  kScalesByThePreparedRows,
  kReadsUnusedRows,
};

// Scales `count` elements with the bug, if it is one of values or memory.
template <typename T>
void Scale(const T* x, T scale, int64_t count, Bug bug, T* out) {
  if (bug == Bug::kWrongValue && count > 2) scale = -scale;
  ParallelFor(count, 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = x[i] * scale;
    if (bug == Bug::kWrongOnTwoThreads && begin > 0) out[begin] = T(0);
  });
  if (bug == Bug::kRoundsOtherwiseOnThreeThreads && omp_get_max_threads() == 3 && count > 0) {
    out[0] = std::nextafter(out[0], T(0));
  }
  if (bug == Bug::kWritesPastOutput) out[count] = T(1);
  if (bug == Bug::kWritesBeforeOutput) out[-1] = T(1);
}

// Clears Out before it reads X: right, unless both are one.
template <typename T>
void ScaleReadingLate(const T* x, T scale, int64_t count, T* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = T(0);
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] * scale;
}

template <typename T>
std::unique_ptr<Kernel> PrepareTwice(PrepareContext& context, Bug bug) {
  const int x = context.InputIndex("X");
  const int hint = context.InputIndex("Hint");
  const int out = context.OutputIndex("Out");
  // "Output" is no slot.
  SKIFF_ENFORCE(out >= 0, kInvalidArgument, "twice: there is no Output");
  T scale = static_cast<T>(context.Attr<float>("scale"));
  // As if the kernel had a default of its own.
  if (bug == Bug::kWrongDefault && !context.op().HasAttr("scale")) scale = T(3);
  const int workspace = context.RequestWorkspace(8 * sizeof(T));
  const Shape prepared = context.Input("X").shape;
  return MakeRowsKernel([=](const KernelContext& run) {
    const Tensor& from = run.input(x);
    Tensor& to = run.output(out);
    int64_t count = to.byte_count() / static_cast<int64_t>(sizeof(T));
    const bool has_fewer_rows = from.shape()[0] < prepared[0];
    if (bug == Bug::kWritesThePreparedRows) count = std::max(count, prepared.element_count());
    T* scratch = static_cast<T*>(run.workspace(workspace));
    if (bug == Bug::kWritesPastWorkspace) scratch[8] = T(0);
    if (bug == Bug::kRefusesData || bug == Bug::kRefusesDataAsDeclared) {
      SKIFF_ENFORCE(count == 0 || from.data<T>()[0] < T(100), kOutOfRange, "too large");
    }
    if (bug == Bug::kInPlaceReadsAfterWrite) {
      return ScaleReadingLate(from.data<T>(), scale, count, to.data<T>());
    }
    const bool negate = bug == Bug::kNegativeZeros && count > 0 && from.data<T>()[0] == T(0);
    const T kept = count > 0 ? to.data<T>()[count - 1] : T(0);
    Scale(from.data<T>(), negate ? -scale : scale, count, bug, to.data<T>());
    if (count == 0) return;
    if (bug == Bug::kLeavesElementUnwritten) to.data<T>()[count - 1] = kept;
    if (bug == Bug::kReadsWorkspaceUnwritten) to.data<T>()[0] += scratch[0];
    if (bug == Bug::kScalesByThePreparedRows && has_fewer_rows) to.data<T>()[0] *= T(0.5);
    if (bug == Bug::kReadsUnusedRows && has_fewer_rows)
      to.data<T>()[0] += 0 * from.data<T>()[count];
    if (bug == Bug::kWritesInput) const_cast<T*>(from.data<T>())[0] = T(0);
    if (bug == Bug::kAsksShapeOnlyInputForItsShape && run.input(hint).shape().rank() == 0) {
      to.data<T>()[0] = T(0);
    }
    // Another check takes the tensor away.
    if (bug == Bug::kReadsShapeOnlyInput && run.input(hint).has_data()) {
      to.data<T>()[0] += run.input(hint).data<T>()[0];
    }
    // With three channels in blocks of 8 or 16 the last element is padding.
    if (bug == Bug::kNonZeroPadding && !to.layout().is_plain()) to.data<T>()[count - 1] = T(1);
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareTwiceGrad(PrepareContext& context, Bug bug) {
  const int out_grad = context.InputIndex("Out@GRAD");
  const int x_grad = context.OutputIndex("X@GRAD");
  const int y_grad = context.OutputIndex("Y@GRAD");
  SKIFF_ENFORCE(x_grad >= 0 || bug != Bug::kRefusesToBeWithoutOutput, kInvalidArgument,
                "twice_grad: \"X@GRAD\" is missing");
  T scale = static_cast<T>(context.Attr<float>("scale"));
  if (bug == Bug::kWrongGradient) scale += T(0.01);
  if (bug == Bug::kWrongFloat32Gradient && sizeof(T) == 4) scale += T(0.01);
  return MakeKernel([=](const KernelContext& run) {
    const Tensor& from = run.input(out_grad);
    const auto write = [&](int index, T factor) {
      if (index < 0) return;
      Scale(from.data<T>(), factor, from.element_count(), Bug::kNone, run.output(index).data<T>());
    };
    write(x_grad, scale);
    // A kernel that forgets that it may be asked for one gradient alone.
    write(y_grad, bug == Bug::kGradientAloneIsMissing && x_grad < 0 ? T(0) : T(1));
  });
}

void InferTwice(OpContext& context, Bug bug) {
  const TensorMeta& x = context.Input("X");
  Shape shape = x.shape;
  DType dtype = x.dtype;
  if (bug == Bug::kThrowsOnUnknownDim) shape.element_count();
  if (bug == Bug::kWrongUnknownDim && shape[0] < 0) shape[0] = 1;
  if (bug == Bug::kWrongShape) shape.Append(1);
  if (bug == Bug::kWrongDType) dtype = DType::kFloat64;
  if (bug != Bug::kShapeNotSet) context.SetOutput("Out", shape, dtype);
}

bool AcceptsOneLayout(const OpContext& context) {
  return !context.HasOutput("Out") || context.Input("X").layout == context.Output("Out").layout;
}

void AddTwice(Bug bug, OpRegistry* registry) {
  OpDef def;
  def.type = "twice";
  def.doc = "Out = scale * X.";
  def.inputs = {{.name = "X", .doc = "factor", .checks_data = bug == Bug::kRefusesDataAsDeclared},
                {.name = "Hint", .doc = "as large", .dispensable = true, .shape_only = true}};
  // One that may be @EMPTY@ as far as the definition is concerned.
  const bool duplicable = bug == Bug::kDoesNotNameTheMissingOutput;
  def.outputs = {{.name = "Out", .doc = "product", .duplicable = duplicable}};
  def.attrs = {{.name = "scale", .type = AttrType::kFloat, .default_value = 2.0f, .doc = "scale"}};
  def.infer = [bug](OpContext& context) { InferTwice(context, bug); };
  def.grad = GradOp("twice_grad", {"X", "Out@GRAD"}, {"X@GRAD"});
  def.in_place = {{"X", "Out"}};
  def.layout_rule = LayoutRule::kSame;
  def.layout_slots = {"X", "Out"};
  def.zero_preserving = true;
  registry->Add(std::move(def));
  const auto add = [&](DType dtype, const std::string& name, KernelFactory prepare) {
    registry->AddKernel(
        "twice",
        {.name = name, .dtype = dtype, .prepare = std::move(prepare), .accepts = AcceptsOneLayout});
  };
  const Bug second = bug == Bug::kWrongSecondCandidate ? Bug::kWrongValue : Bug::kNone;
  add(DType::kFloat32, "plain", [=](PrepareContext& c) { return PrepareTwice<float>(c, bug); });
  add(DType::kFloat64, "plain", [=](PrepareContext& c) { return PrepareTwice<double>(c, bug); });
  add(DType::kFloat32, "second", [=](PrepareContext& c) { return PrepareTwice<float>(c, second); });
}

void AddTwiceGrad(Bug bug, OpRegistry* registry) {
  OpDef def;
  def.type = "twice_grad";
  def.doc = "X@GRAD = scale * Out@GRAD, Y@GRAD = Out@GRAD.";
  def.inputs = {{.name = "X", .doc = "factor", .dispensable = true, .shape_only = true},
                {.name = "Out@GRAD", .doc = "gradient"}};
  def.outputs = {{.name = "X@GRAD", .doc = "gradient", .dispensable = true},
                 {.name = "Y@GRAD", .doc = "gradient", .dispensable = true}};
  def.attrs = {{.name = "scale", .type = AttrType::kFloat, .default_value = 2.0f, .doc = "scale"}};
  def.infer = [](OpContext& context) {
    context.SetOutputLike("X@GRAD", "Out@GRAD");
    context.SetOutputLike("Y@GRAD", "Out@GRAD");
  };
  def.no_gradient_reason = "second derivatives are not provided";
  registry->Add(std::move(def));
  registry->AddCpuKernels<float, double>("twice_grad", [bug]<typename T>(PrepareContext& context) {
    return PrepareTwiceGrad<T>(context, bug);
  });
}

// Out = scale * X + Y, whose two gradients twice_grad computes.
void AddTwicePlus(OpRegistry* registry) {
  OpDef def;
  def.type = "twice_plus";
  def.doc = "Out = scale * X + Y.";
  def.inputs = {{.name = "X", .doc = "factor"}, {.name = "Y", .doc = "summand"}};
  def.outputs = {{.name = "Out", .doc = "sum"}};
  def.attrs = {{.name = "scale", .type = AttrType::kFloat, .default_value = 2.0f, .doc = "scale"}};
  def.infer = [](OpContext& context) { context.SetOutputLike("Out", "X"); };
  def.grad = GradOp("twice_grad", {"Out@GRAD"}, {"X@GRAD", "Y@GRAD"});
  registry->Add(std::move(def));
  registry->AddCpuKernels<float, double>("twice_plus", []<typename T>(PrepareContext& context) {
    const T scale = static_cast<T>(context.Attr<float>("scale"));
    return MakeKernel([scale](const KernelContext& run) {
      for (int64_t i = 0; i < run.output(0).element_count(); ++i) {
        run.output(0).data<T>()[i] = scale * run.input(0).data<T>()[i] + run.input(1).data<T>()[i];
      }
    });
  });
}

OpCase TwiceCase() {
  OpCase op_case;
  op_case.name = "images";
  op_case.type = "twice";
  op_case.inputs = {{"X", {Uniform({2, 3, 3, 5}, 1)}}, {"Hint", {Uniform({2, 3, 3, 5}, 2)}}};
  op_case.outputs = {{"Out", 1}};
  op_case.reference = [](const Arrays& inputs) {
    Array out = inputs.at("X")[0];
    for (double& value : out.values) value *= 2;
    return Arrays{{"Out", {out}}};
  };
  op_case.gradients = {"X"};
  return op_case;
}

OpCase TwicePlusCase() {
  OpCase op_case;
  op_case.name = "two_gradients";
  op_case.type = "twice_plus";
  op_case.inputs = {{"X", {Uniform({4, 3}, 1)}}, {"Y", {Uniform({4, 3}, 2)}}};
  op_case.outputs = {{"Out", 1}};
  op_case.reference = [](const Arrays& inputs) {
    Array out = inputs.at("X")[0];
    const std::vector<double>& y = inputs.at("Y")[0].values;
    for (size_t i = 0; i < y.size(); ++i) out.values[i] = 2 * out.values[i] + y[i];
    return Arrays{{"Out", {out}}};
  };
  op_case.gradients = {"X", "Y"};
  return op_case;
}

std::vector<std::string> FailuresOf(Bug bug, const OpCase& op_case = TwiceCase()) {
  OpRegistry registry;
  AddTwice(bug, &registry);
  AddTwiceGrad(bug, &registry);
  AddTwicePlus(&registry);
  return RunCase(registry, op_case).failures;
}

TEST(OpRunner, PassesACorrectOp) {
  EXPECT_THAT(FailuresOf(Bug::kNone), IsEmpty());
  EXPECT_THAT(FailuresOf(Bug::kNone, TwicePlusCase()), IsEmpty());
}

TEST(OpRunner, PassesAnOpThatRefusesDataAsItDeclares) {
  EXPECT_THAT(FailuresOf(Bug::kRefusesDataAsDeclared), IsEmpty());
}

TEST(OpRunner, PassesEmptyTensors) {
  OpCase op_case = TwiceCase();
  op_case.inputs = {{"X", {Uniform({0, 3, 2, 2}, 1)}}, {"Hint", {Uniform({0, 3, 2, 2}, 2)}}};
  EXPECT_THAT(FailuresOf(Bug::kNone, op_case), IsEmpty());
}

TEST(OpRunner, RunsEveryCandidateDTypeAndLayout) {
  OpRegistry registry;
  AddTwice(Bug::kNone, &registry);
  AddTwiceGrad(Bug::kNone, &registry);
  const CaseReport report = RunCase(registry, TwiceCase());
  EXPECT_THAT(report.kernels,
              ElementsAre("twice/plain/float32", "twice/plain/float64", "twice/second/float32",
                          "twice_grad/plain/float32", "twice_grad/plain/float64"));
  EXPECT_GT(report.runs_with_fewer_rows, 0);
  RunnerOptions plain_only;
  plain_only.channel_blocks = {};
  EXPECT_GT(report.runs, RunCase(registry, TwiceCase(), plain_only).runs);
}

struct PlantedBug {
  Bug bug;
  std::string name;
  std::string message;

  friend void PrintTo(const PlantedBug& planted, std::ostream* stream) { *stream << planted.name; }
};

class OpRunnerFinds : public ::testing::TestWithParam<PlantedBug> {};

TEST_P(OpRunnerFinds, PlantedBug) {
  const Bug bug = GetParam().bug;
  const bool of_two_gradients =
      bug == Bug::kGradientAloneIsMissing || bug == Bug::kRefusesToBeWithoutOutput;
  EXPECT_THAT(FailuresOf(bug, of_two_gradients ? TwicePlusCase() : TwiceCase()),
              Contains(HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    Bugs, OpRunnerFinds,
    ::testing::Values(
        PlantedBug{Bug::kWrongValue, "WrongValue",
                   "twice/images float32 candidate=plain threads=1: Out.0 index [0, 0, 0, 0]: "
                   "found "},
        PlantedBug{Bug::kWrongGradient, "WrongGradient", "by central differences"},
        PlantedBug{Bug::kWrongFloat32Gradient, "WrongFloat32Gradient",
                   "gradient op twice_grad float32 candidate=plain threads=1: X.0@GRAD index"},
        PlantedBug{Bug::kGradientAloneIsMissing, "GradientAloneIsMissing",
                   "gradient of Y.0 alone differs from all together"},
        PlantedBug{Bug::kGradientAloneIsMissing, "NeedsAnOutputThatMayBeAbsent",
                   "without output X.0@GRAD: Y.0@GRAD differs"},
        PlantedBug{Bug::kWritesPastOutput, "WritesPastOutput",
                   "wrote out of the bounds of output Out.0"},
        PlantedBug{Bug::kWritesBeforeOutput, "WritesBeforeOutput",
                   "wrote out of the bounds of output Out.0"},
        PlantedBug{Bug::kWritesPastWorkspace, "WritesPastWorkspace",
                   "wrote out of the bounds of workspace 0"},
        PlantedBug{Bug::kWritesInput, "WritesInput", "wrote into input X.0"},
        PlantedBug{Bug::kLeavesElementUnwritten, "LeavesElementUnwritten",
                   "in a second run over other leftovers in memory"},
        PlantedBug{Bug::kReadsWorkspaceUnwritten, "ReadsWorkspaceUnwritten", "nan, expected "},
        PlantedBug{Bug::kInPlaceReadsAfterWrite, "InPlaceReadsAfterWrite",
                   "in place X.0->Out.0: Out.0 differs"},
        PlantedBug{Bug::kWrongShape, "WrongShape",
                   "Out.0: the shape rule says [2, 3, 3, 5, 1], expected [2, 3, 3, 5]"},
        PlantedBug{Bug::kWrongDType, "WrongDType",
                   "Out.0: the shape rule says float64, expected float32"},
        PlantedBug{Bug::kShapeNotSet, "ShapeNotSet", "the shape rule does not set output"},
        PlantedBug{Bug::kThrowsOnUnknownDim, "ThrowsOnUnknownDim",
                   "with dim 0 of input 0 unknown: threw"},
        PlantedBug{Bug::kWrongUnknownDim, "WrongUnknownDim",
                   "with dim 0 of input 0 unknown: Out.0: inferred [1, 3, 3, 5]"},
        PlantedBug{Bug::kNonZeroPadding, "NonZeroPadding",
                   "X.0=blocked8: left the padding of output Out.0"},
        PlantedBug{Bug::kReadsShapeOnlyInput, "ReadsShapeOnlyInput",
                   "with other data in shape-only input Hint.0"},
        PlantedBug{Bug::kAsksShapeOnlyInputForItsShape, "AsksShapeOnlyInputForItsShape",
                   "without the shape-only input Hint.0"},
        PlantedBug{Bug::kWrongDefault, "WrongDefault", "with default attributes written out"},
        PlantedBug{Bug::kWrongOnTwoThreads, "WrongOnTwoThreads", "threads=2: Out.0 index"},
        PlantedBug{Bug::kRoundsOtherwiseOnThreeThreads, "RoundsOtherwiseOnThreeThreads",
                   "threads=3 compared with the first of them: Out.0 differs"},
        PlantedBug{Bug::kWrongSecondCandidate, "WrongSecondCandidate",
                   "candidate=second threads=1: Out.0 index"},
        PlantedBug{Bug::kRefusesData, "RefusesData",
                   "with bytes of 127 in X.0: refused, though the slot is not checks_data"},
        PlantedBug{Bug::kRefusesToBeWithoutOutput, "RefusesToBeWithoutOutput",
                   "without output X.0@GRAD: refused, though the slot is dispensable"},
        PlantedBug{Bug::kDoesNotNameTheMissingOutput, "DoesNotNameTheMissingOutput",
                   "without output Out.0: an Error that doesn't name the slot: twice: there is no "
                   "Output"},
        PlantedBug{Bug::kNegativeZeros, "NegativeZeros", "Out.0 of zeros is not zero"},
        PlantedBug{Bug::kWritesThePreparedRows, "WritesThePreparedRows",
                   "prepared for 4 instead of 2 rows: wrote after the rows of output Out.0"},
        PlantedBug{Bug::kScalesByThePreparedRows, "ScalesByThePreparedRows",
                   "prepared for 4 instead of 2 rows: Out.0 differs"},
        PlantedBug{Bug::kReadsUnusedRows, "ReadsUnusedRows",
                   "prepared for 4 instead of 2 rows: Out.0 index [0, 0, 0, 0]: found "}),
    [](const auto& info) { return info.param.name; });

TEST(OpRunner, ReportsReferencesOfAnotherShape) {
  OpCase op_case = TwiceCase();
  op_case.reference = [](const Arrays&) { return Arrays{{"Out", {Uniform({7}, 1)}}}; };
  EXPECT_THAT(FailuresOf(Bug::kNone, op_case), Contains(HasSubstr("expected [7]")));
}

TEST(OpRunner, ReportsWhatACasesOwnCheckThrows) {
  OpCase op_case = TwiceCase();
  op_case.check = [](const Arrays&, const Arrays& outputs) {
    SKIFF_ENFORCE(outputs.at("Out")[0].values[0] > 100, kOutOfRange, "too small");
  };
  EXPECT_THAT(FailuresOf(Bug::kNone, op_case), Contains("twice/images float32: too small"));
}

TEST(OpRunner, ReportsUnknownOpsAndSlots) {
  OpCase unknown = TwiceCase();
  unknown.type = "twise";
  EXPECT_THAT(FailuresOf(Bug::kNone, unknown), Contains(HasSubstr("did you mean \"twice\"")));
  OpCase extra = TwiceCase();
  extra.inputs["Z"] = {Uniform({1}, 1)};
  EXPECT_THAT(FailuresOf(Bug::kNone, extra), Contains(HasSubstr("no input slot \"Z\"")));
}

TEST(OpRunner, ReportsACaseThatChecksNothing) {
  OpCase op_case = TwiceCase();
  op_case.reference = nullptr;
  EXPECT_THAT(FailuresOf(Bug::kNone, op_case), Contains(HasSubstr("neither reference nor check")));
}

TEST(OpCaseArrays, RepeatForOneSeed) {
  EXPECT_EQ(Uniform({3, 4}, 5).values, Uniform({3, 4}, 5).values);
  EXPECT_NE(Uniform({3, 4}, 5).values, Uniform({3, 4}, 6).values);
}

TEST(OpCaseArrays, AreMadeWhenTheyAreRead) {
  int made = 0;
  const LazyValues lazy([&made] {
    ++made;
    return std::vector<double>{1, 2, 3};
  });
  LazyValues copy = lazy;
  EXPECT_EQ(made, 0);
  EXPECT_EQ(lazy.size(), 3u);
  EXPECT_EQ(lazy[2], 3);
  EXPECT_EQ(made, 1);
  copy[0] = 7;
  EXPECT_EQ(made, 2);
  EXPECT_THAT(copy, ElementsAre(7, 2, 3));
  EXPECT_THAT(lazy, ElementsAre(1, 2, 3));
}

TEST(OpCaseArrays, KeepTheirPromises) {
  for (const double value : UniformAwayFrom({100}, 1, {0.0, 0.5}, 0.1).values) {
    EXPECT_GE(std::abs(value), 0.1);
    EXPECT_GE(std::abs(value - 0.5), 0.1);
  }
  std::vector<double> distinct = Distinct({50}, 3, 0.0, 50.0).values;
  std::sort(distinct.begin(), distinct.end());
  for (size_t i = 0; i < distinct.size(); ++i) {
    EXPECT_DOUBLE_EQ(distinct[i], static_cast<double>(i) + 0.5);
  }
  for (const double value : Integers({50}, 3, -2, 3).values) {
    EXPECT_EQ(value, std::floor(value));
    EXPECT_TRUE(value >= -2 && value < 3) << value;
  }
  EXPECT_THROW(Values({2, 2}, {1.0}), Error);
  EXPECT_THROW(UniformAwayFrom({1}, 1, {0.0}, 2.0).values.size(), Error);
}

}  // namespace
}  // namespace skiff::harness
