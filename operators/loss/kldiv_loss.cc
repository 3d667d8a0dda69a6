// kldiv_loss: for log-probabilities X, l = Target * (log(Target) - X) where Target > 0, else 0.
// Loss is l (reduction none), its sum (sum), its mean (mean), or its sum divided by X's first dim
// (batchmean). Source: Fluid's kldiv_loss, after Kullback, Leibler: On Information and Sufficiency
// (1951).
//
// X@GRAD = -Target * Loss@GRAD where Target > 0, divided as Loss is.
#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/loss/kernels/element_grains.h"
#include "operators/loss/kernels/kldiv_divisor.h"
#include "operators/loss/kernels/loss_loops.h"
#include "operators/loss/kernels/loss_sums.h"

namespace skiff {
namespace {

#include "operators/loss/kernels/kldiv_loss_formula-inl.h"

// The number of elements whose losses one thread sums, so that no sum depends on the number of
// threads.
constexpr int64_t kPart = 4096;

int64_t PartsOf(int64_t count) { return (count + kPart - 1) / kPart; }

template <typename T>
std::unique_ptr<Kernel> PrepareReduced(PrepareContext& context) {
  const FormulaArguments<KldivLossFormula, T> arguments(context);
  const ElementLoop<T> loop =
      LoopOfFormula<KldivLossFormula, T>(context, ForwardLoop<KldivLossLoops>);
  const KldivDivisor divisor(context);
  const In<T> x(context, "X");
  const int scratch = context.RequestWorkspace(
      std::max<int64_t>(PartsOf(context.Input("X").shape.element_count()), 1) *
      static_cast<int64_t>(sizeof(double)));
  return MakeRowsKernel([=](const KernelContext& run) {
    ElementArrays<T> arrays = arguments(run);
    T* loss = std::exchange(arrays.outputs[0], nullptr);
    auto* sums = static_cast<double*>(run.workspace(scratch));
    const int64_t count = x.count(run);
    const int64_t parts = PartsOf(count);
    ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        const int64_t first = part * kPart;
        sums[part] = SumOfOutput(loop, arrays.From(first), 0, std::min(kPart, count - first));
      }
    });
    // In the order of the parts, whichever thread computed them.
    *loss = static_cast<T>(std::accumulate(sums, sums + parts, 0.0) / divisor.For(x.shape(run)));
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const FormulaArguments<KldivLossGradFormula, T> arguments(context);
  const ElementLoop<T> loop =
      LoopOfFormula<KldivLossGradFormula, T>(context, GradLoop<KldivLossLoops>);
  const KldivDivisor divisor(context);
  const In<T> dloss(context, "Loss@GRAD");
  const In<T> target(context, "Target");
  return MakeRowsKernel([=, is_reduced = IsReduced(context)](const KernelContext& run) {
    ElementArrays<T> arrays = arguments(run);
    T of_element = 0;
    if (is_reduced) {
      of_element = *dloss(run) / static_cast<T>(divisor.For(target.shape(run)));
      arrays.inputs[0] = {&of_element, 0};
    }
    RunLoop(loop, arrays, target.count(run), kLossGrain);
  });
}

void Infer(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  CheckInputLike(context, "Target", x.shape, x.dtype);
  SKIFF_ENFORCE(context.Attr<std::string>("reduction") != "batchmean" || x.shape.rank() >= 1,
                kInvalidArgument, context.op().type,
                ": X is of rank 0, expected at least one dim for reduction batchmean");
  context.SetOutputLike("Loss", "X");
  if (IsReduced(context)) context.SetOutput("Loss", Shape(), x.dtype);
}

}  // namespace

void RegisterKldivLoss(OpRegistry& registry) {
  OpDef def = {.type = "kldiv_loss",
               .doc = "Loss = Target * (log(Target) - X), 0 where Target isn't above 0, reduced.",
               .inputs = {{.name = "X", .doc = "Log-probabilities."},
                          {.name = "Target", .doc = "Probabilities, of X's shape and dtype."}},
               .outputs = {{.name = "Loss",
                            .doc = "The losses, of X's shape; of rank 0 if they are reduced."}},
               .attrs = {ChoiceAttr("reduction", "mean", {"none", "batchmean", "mean", "sum"},
                                    "none, batchmean, mean or sum.")},
               .infer = Infer};
  def.precision = Precision::kHigh;
  OpDef grad = GradientOf(&def, {OneOfAnyRank("Loss@GRAD"), "Target", ForShape("X")}, {"X@GRAD"});
  grad.doc = "X@GRAD = -Target * Loss@GRAD where Target > 0, else 0; divided as Loss is.";
  grad.in_place = {{"Target", "X@GRAD"}};
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>("kldiv_loss", []<typename T>(PrepareContext& context) {
    if (IsReduced(context)) return PrepareReduced<T>(context);
    return PrepareFormula<KldivLossFormula, T>(context, ForwardLoop<KldivLossLoops>, kLogLossGrain);
  });
  registry.AddCpuKernels<float, double>("kldiv_loss_grad", []<typename T>(PrepareContext& context) {
    return PrepareGrad<T>(context);
  });
}

}  // namespace skiff
