// kldiv_loss: for log-probabilities X, l = Target * (log(Target) - X) where Target > 0, else 0.
// Loss is l (reduction none), its sum (sum), its mean (mean), or its sum divided by X's first dim
// (batchmean). Source: Fluid's kldiv_loss, after Kullback, Leibler: On Information and Sufficiency
// (1951).
//
// X@GRAD = -Target * Loss@GRAD where Target > 0, divided as Loss is.
#include <algorithm>
#include <memory>
#include <string>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/element_formula.h"
#include "operators/common/input_checks.h"
#include "operators/loss/kernels/element_grains.h"
#include "operators/loss/kernels/kldiv_loss_formula.h"

namespace skiff {
namespace {

// The number of elements whose losses are summed one after the other, so that no sum depends on the
// number of threads.
constexpr int64_t kPart = 4096;

int64_t PartsOf(int64_t count) { return (count + kPart - 1) / kPart; }

template <typename T>
std::unique_ptr<Kernel> PrepareReduced(PrepareContext& context) {
  const KldivLossFormula formula(context);
  const KldivDivisor divisor(context);
  const In<T> x(context, "X");
  const In<T> target(context, "Target");
  const Out<T> loss(context, "Loss");
  const int scratch = context.RequestWorkspace(
      std::max<int64_t>(PartsOf(context.Input("X").shape.element_count()), 1) *
      static_cast<int64_t>(sizeof(double)));
  return MakeRowsKernel([=](const KernelContext& run) {
    const T* from = x(run);
    const T* targets = target(run);
    auto* sums = static_cast<double*>(run.workspace(scratch));
    const int64_t count = x.count(run);
    const int64_t parts = PartsOf(count);
    ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        double sum = 0;
        for (int64_t i = part * kPart; i < std::min(count, (part + 1) * kPart); ++i) {
          sum += static_cast<double>(formula(from[i], targets[i])[0]);
        }
        sums[part] = sum;
      }
    });
    double sum = 0;
    // In the order of the parts, whichever thread computed them.
    for (int64_t part = 0; part < parts; ++part) sum += sums[part];
    *loss(run) = static_cast<T>(sum / divisor.For(x.shape(run)));
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
  OpDef grad = GradientOf(&def, {OneOfAnyRank("Loss@GRAD"), "Target", ForShape("X")}, {"X@GRAD"});
  grad.doc = "X@GRAD = -Target * Loss@GRAD where Target > 0, else 0; divided as Loss is.";
  grad.in_place = {{"Target", "X@GRAD"}};
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>("kldiv_loss", []<typename T>(PrepareContext& context) {
    return IsReduced(context) ? PrepareReduced<T>(context)
                              : PrepareFormula<KldivLossFormula, T>(context, kLogLossGrain);
  });
  registry.AddCpuKernels<float, double>("kldiv_loss_grad", []<typename T>(PrepareContext& context) {
    return PrepareKldivLossGrad<T>(context, ForEachElement{kLossGrain});
  });
}

}  // namespace skiff
