// smooth_l1_loss: with d = InsideWeight * (X - Y), Out of each row = the sum of OutsideWeight *
// s(d), where s(d) is (sigma * d)^2 / 2 if |d| < 1 / sigma^2, else |d| - 1 / (2 sigma^2). Source:
// smooth_l1_loss of Fluid 1.8, after Girshick: Fast R-CNN (2015).
//
// X@GRAD = Out@GRAD * InsideWeight * OutsideWeight * s'(d), Y@GRAD = -X@GRAD.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/loss/kernels/element_grains.h"
#include "operators/loss/kernels/loss_loops.h"
#include "operators/loss/kernels/loss_sums.h"

namespace skiff {
namespace {

#include "operators/loss/kernels/smooth_l1_loss_formula-inl.h"

// Rows of a tensor, of which a thread takes several at once if they are short.
struct Rows {
  explicit Rows(const Shape& shape)
      : count(shape[0]),
        length(shape.element_count(1, shape.rank())),
        group(std::max<int64_t>(1, kSummedLosses / std::max<int64_t>(length, 1))) {}

  // Calls body(first row, number of rows) for groups of rows. Those of more than one row have at
  // most kSummedLosses elements.
  template <class Body>
  void ForEachGroup(const Body& body) const {
    const int64_t groups = (count + group - 1) / group;
    const int64_t grain = std::max<int64_t>(1, kLossGrain / std::max<int64_t>(group * length, 1));
    ParallelFor(groups, grain, [&](int64_t begin, int64_t end) {
      for (int64_t first = begin * group; first < std::min(count, end * group); first += group) {
        body(first, std::min(group, count - first));
      }
    });
  }

  int64_t count;
  int64_t length;
  int64_t group;
};

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const FormulaArguments<SmoothL1LossFormula, T> arguments(context);
  const ElementLoop<T> loop =
      LoopOfFormula<SmoothL1LossFormula, T>(context, ForwardLoop<SmoothL1LossLoops>);
  const In<T> x(context, "X");
  return MakeRowsKernel([=](const KernelContext& run) {
    const Rows rows(x.shape(run));
    ElementArrays<T> arrays = arguments(run);
    T* losses = std::exchange(arrays.outputs[1], nullptr);
    rows.ForEachGroup([&](int64_t first, int64_t count) {
      ElementArrays<T> group = arrays.From(first * rows.length);
      if (rows.length > kSummedLosses) {
        losses[first] = static_cast<T>(SumOfOutput(loop, group, 1, rows.length));
        return;
      }
      T terms[kSummedLosses];
      group.outputs[1] = terms;
      loop(group, count * rows.length);
      for (int64_t row = 0; row < count; ++row) {
        losses[first + row] = static_cast<T>(SumOfLosses(terms + row * rows.length, rows.length));
      }
    });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const FormulaArguments<SmoothL1LossGradFormula, T> arguments(context);
  const ElementLoop<T> loop =
      LoopOfFormula<SmoothL1LossGradFormula, T>(context, GradLoop<SmoothL1LossLoops>);
  const In<T> diff(context, "Diff");
  const In<T> dout(context, "Out@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const Rows rows(diff.shape(run));
    const ElementArrays<T> arrays = arguments(run);
    const T* douts = dout(run);
    rows.ForEachGroup([&](int64_t first, int64_t count) {
      ElementArrays<T> group = arrays.From(first * rows.length);
      T of_elements[kSummedLosses];
      if (count == 1) {
        group.inputs[kSmoothL1Dout] = {douts + first, 0};
      } else {
        for (int64_t row = 0; row < count; ++row) {
          std::fill_n(of_elements + row * rows.length, rows.length, douts[first + row]);
        }
        group.inputs[kSmoothL1Dout] = {of_elements, 1};
      }
      loop(group, count * rows.length);
    });
  });
}

void CheckWeights(const OpContext& context, const TensorMeta& x) {
  SKIFF_ENFORCE(context.HasInput("InsideWeight") == context.HasInput("OutsideWeight"),
                kInvalidArgument, context.op().type,
                ": only one of InsideWeight and OutsideWeight is given, expected both or none");
  if (!context.HasInput("InsideWeight")) return;
  CheckInputLike(context, "InsideWeight", x.shape, x.dtype);
  CheckInputLike(context, "OutsideWeight", x.shape, x.dtype);
}

void Infer(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  SKIFF_ENFORCE(x.shape.rank() >= 2, kInvalidArgument, "smooth_l1_loss: X has shape ", x.shape,
                ", expected at least 2 dims");
  CheckInputLike(context, "Y", x.shape, x.dtype);
  CheckWeights(context, x);
  context.SetOutputLike("Diff", "X");
  context.SetOutputLike("Out", "X");  // for its LoD level
  context.SetOutput("Out", {x.shape[0], 1}, x.dtype);
}

void InferGrad(OpContext& context) {
  const TensorMeta& diff = context.Input("Diff");
  SKIFF_ENFORCE(diff.shape.rank() >= 2, kInvalidArgument, "smooth_l1_loss_grad: Diff has shape ",
                diff.shape, ", expected at least 2 dims");
  CheckInputLike(context, "Out@GRAD", {diff.shape[0], 1}, diff.dtype);
  CheckWeights(context, diff);
  // The gradient op has neither X nor Y: Diff has their shape.
  context.SetOutputLike("X@GRAD", "Diff");
  context.SetOutputLike("Y@GRAD", "Diff");
}

SlotDef WeightSlot(StaticText name, StaticText doc) {
  return {.name = name, .doc = doc, .dispensable = true};
}

}  // namespace

void RegisterSmoothL1Loss(OpRegistry& registry) {
  OpDef def = {
      .type = "smooth_l1_loss",
      .doc =
          "Out of each row = the sum of OutsideWeight * s(InsideWeight * (X - Y)), s(d) being "
          "(sigma * d)^2 / 2 where |d| < 1 / sigma^2, else |d| - 1 / (2 * sigma^2).",
      .inputs = {{.name = "X", .doc = "Predictions, [N, ...]."},
                 {.name = "Y", .doc = "What they should be, of X's shape and dtype."},
                 WeightSlot("InsideWeight", "Factors of X - Y, of X's shape; 1 without."),
                 WeightSlot("OutsideWeight", "Factors of the losses, of X's shape; 1 without.")},
      .outputs = {{.name = "Diff", .doc = "InsideWeight * (X - Y).", .intermediate = true},
                  {.name = "Out", .doc = "The loss of each row, [N, 1]."}},
      .attrs = {{.name = "sigma",
                 .type = AttrType::kFloat,
                 .default_value = 1.0f,
                 .doc = "The parabola ends at 1 / sigma^2.",
                 .accepts = [](const Attribute& value) { return std::get<float>(value) != 0; },
                 .expected = "a number other than 0"}},
      .infer = Infer,
      .in_place = {{"X", "Diff"}, {"Y", "Diff"}}};
  def.precision = Precision::kHigh;
  OpDef grad =
      GradientOf(&def, {"Diff", "InsideWeight", "OutsideWeight", "Out@GRAD"}, {"X@GRAD", "Y@GRAD"});
  grad.doc = "X@GRAD = Out@GRAD * InsideWeight * OutsideWeight * s'(Diff), Y@GRAD = -X@GRAD.";
  grad.infer = InferGrad;
  grad.in_place = {{"Diff", "X@GRAD"}, {"Diff", "Y@GRAD"}};
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      "smooth_l1_loss", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "smooth_l1_loss_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
