// sigmoid_cross_entropy_with_logits: Out = max(X, 0) - X * Label + pos_weight * log(1 + exp(-|X|)),
// the cross-entropy of the probabilities 1 / (1 + exp(-X)) where pos_weight is 1. Source: Fluid's
// sigmoid_cross_entropy_with_logits.
//
// Elements whose Label, truncated to an integer, is ignore_index are 0. With `normalize`, Out is
// divided by the number of labels that differ from ignore_index (by 1 if there are none).
//
// X@GRAD = Out@GRAD times the derivative:
// [X > 0] - Label - pos_weight * sign(X) * exp(-|X|) / (1 + exp(-|X|)).
// Fluid 2.6 computes pos_weight / (1 + exp(-X)) - Label, which is the derivative only where X < 0
// or pos_weight is 1. Using |X| keeps the exponential from overflowing.
#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/loss/kernels/element_grains.h"
#include "operators/loss/kernels/loss_loops.h"

namespace skiff {
namespace {

#include "operators/loss/kernels/sigmoid_cross_entropy_with_logits_formula-inl.h"

// Returns the number of labels that count, at least 1. Counts are integers, so their order doesn't
// matter.
template <typename T>
T CountLabels(const T* labels, int64_t count, T ignored) {
  std::atomic<int64_t> counted{0};
  ParallelFor(count, kLossGrain, [&](int64_t begin, int64_t end) {
    counted.fetch_add(std::count_if(labels + begin, labels + end,
                                    [=](T label) { return IsCountedLabel(label, ignored); }),
                      std::memory_order_relaxed);
  });
  return static_cast<T>(std::max<int64_t>(1, counted.load()));
}

// Returns the kernel of the op or of its gradient.
template <class Formula, typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context, FloatLoopMaker make_float_loop) {
  const FormulaArguments<Formula, T> arguments(context);
  const ElementLoop<T> loop = LoopOfFormula<Formula, T>(context, make_float_loop);
  const In<T> labels(context, "Label");
  const bool normalize = context.Attr<bool>("normalize");
  const auto ignored = static_cast<T>(context.IntAttr("ignore_index"));
  return MakeRowsKernel([=](const KernelContext& run) {
    ElementArrays<T> arrays = arguments(run);
    const int64_t count = arguments.count(run);
    T divisor = 1;
    if (normalize) {
      divisor = CountLabels(labels(run), count, ignored);
      arrays.inputs[kSigmoidDivisor] = {&divisor, 0};
    }
    RunLoop(loop, arrays, count, kLogLossGrain);
  });
}

void Infer(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  CheckInputLike(context, "Label", x.shape, x.dtype);
  if (context.HasInput("pos_weight")) CheckInputLike(context, "pos_weight", x.shape, x.dtype);
  context.SetOutputLike("Out", "X");
}

}  // namespace

void RegisterSigmoidCrossEntropyWithLogits(OpRegistry& registry) {
  OpDef def = {.type = "sigmoid_cross_entropy_with_logits",
               .doc = "Out = max(X, 0) - X * Label + pos_weight * log(1 + exp(-|X|)).",
               .inputs = {{.name = "X", .doc = "Logits."},
                          {.name = "Label", .doc = "0 or 1, or between, of X's shape and dtype."},
                          {.name = "pos_weight",
                           .doc = "Factors of the logarithm, of X's shape; 1 without.",
                           .dispensable = true}},
               .outputs = {{.name = "Out", .doc = "The losses, of X's shape."}},
               .attrs = {{.name = "normalize",
                          .type = AttrType::kBool,
                          .default_value = false,
                          .doc = "Whether to divide by the number of labels that are not ignored."},
                         {.name = "ignore_index",
                          .type = AttrType::kInt,
                          .default_value = int32_t{-100},
                          .doc = "Elements of this label have loss and gradient 0."}},
               .infer = Infer,
               .in_place = {{"X", "Out"}}};
  def.precision = Precision::kHigh;
  OpDef grad = GradientOf(&def, {"Label", "Out@GRAD", "X", "pos_weight"}, {"X@GRAD"});
  grad.doc = "X@GRAD = Out@GRAD times the derivative of Out.";
  grad.in_place = {{"Out@GRAD", "X@GRAD"}};
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      "sigmoid_cross_entropy_with_logits", []<typename T>(PrepareContext& context) {
        return Prepare<SigmoidLossFormula, T>(context, ForwardLoop<SigmoidLossLoops>);
      });
  registry.AddCpuKernels<float, double>(
      "sigmoid_cross_entropy_with_logits_grad", []<typename T>(PrepareContext& context) {
        return Prepare<SigmoidLossGradFormula, T>(context, GradLoop<SigmoidLossLoops>);
      });
}

}  // namespace skiff
