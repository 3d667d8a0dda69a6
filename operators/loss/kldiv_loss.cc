// kldiv_loss: for log-probabilities X, l = Target * (log(Target) - X) where Target > 0, else 0.
// Loss is l (reduction none), its sum (sum), its mean (mean), or its sum divided by X's first dim
// (batchmean). Source: Fluid's kldiv_loss, after Kullback, Leibler: On Information and Sufficiency
// (1951).
//
// X@GRAD = -Target * Loss@GRAD where Target > 0, divided as Loss is.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/loss/kernels/element_grains.h"

namespace skiff {
namespace {

// The number of elements whose losses are summed one after the other, so that no sum depends on the
// number of threads.
constexpr int64_t kPart = 4096;

int64_t PartsOf(int64_t count) { return (count + kPart - 1) / kPart; }

bool IsReduced(const OpContext& context) {
  return context.Attr<std::string>("reduction") != "none";
}

// The divisor of the sum of the losses.
class Divisor {
 public:
  explicit Divisor(const OpContext& context)
      : type_(context.def().type),
        by_elements_(context.Attr<std::string>("reduction") == "mean"),
        by_rows_(context.Attr<std::string>("reduction") == "batchmean") {
    // What is wrong is found before any run.
    For(context.Input("Target").shape);
  }

  // Throws Error if it is 0.
  double For(const Shape& shape) const {
    if (!by_elements_ && !by_rows_) return 1;
    SKIFF_ENFORCE(shape.element_count() > 0, kInvalidArgument, type_, ": X of shape ", shape,
                  " has no elements, expected at least one for reduction ",
                  by_elements_ ? "mean" : "batchmean");
    return static_cast<double>(by_elements_ ? shape.element_count() : shape[0]);
  }

 private:
  StaticText type_;
  bool by_elements_;
  bool by_rows_;
};

template <typename T>
T LossOf(T x, T target) {
  return target > T{0} ? target * (std::log(target) - x) : T{0};
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const int x = context.InputIndex("X");
  const int target = context.InputIndex("Target");
  const int loss = context.OutputIndex("Loss");
  if (!IsReduced(context)) {
    return MakeRowsKernel([=](const KernelContext& run) {
      const T* from = run.input(x).data<T>();
      const T* targets = run.input(target).data<T>();
      T* losses = run.output(loss).data<T>();
      ParallelFor(run.input(x).element_count(), kLogLossGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) losses[i] = LossOf(from[i], targets[i]);
      });
    });
  }
  const Divisor divisor(context);
  const int scratch = context.RequestWorkspace(
      std::max<int64_t>(PartsOf(context.Input("X").shape.element_count()), 1) *
      static_cast<int64_t>(sizeof(double)));
  return MakeRowsKernel([=](const KernelContext& run) {
    const T* from = run.input(x).data<T>();
    const T* targets = run.input(target).data<T>();
    auto* sums = static_cast<double*>(run.workspace(scratch));
    const int64_t count = run.input(x).element_count();
    const int64_t parts = PartsOf(count);
    ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        double sum = 0;
        for (int64_t i = part * kPart; i < std::min(count, (part + 1) * kPart); ++i) {
          sum += static_cast<double>(LossOf(from[i], targets[i]));
        }
        sums[part] = sum;
      }
    });
    double sum = 0;
    // In the order of the parts, whichever thread computed them.
    for (int64_t part = 0; part < parts; ++part) sum += sums[part];
    *run.output(loss).data<T>() = static_cast<T>(sum / divisor.For(run.input(x).shape()));
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  // A reduced loss has one gradient for all elements.
  const int64_t step = IsReduced(context) ? 0 : 1;
  const Divisor divisor_of(context);
  const int gradient = context.InputIndex("Loss@GRAD");
  const int target = context.InputIndex("Target");
  const int dx = context.OutputIndex("X@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const T* from = run.input(gradient).data<T>();
    const T* targets = run.input(target).data<T>();
    T* to = run.output(dx).data<T>();
    const T divisor = static_cast<T>(divisor_of.For(run.input(target).shape()));
    ParallelFor(run.input(target).element_count(), kLossGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T slope = from[i * step] / divisor * -targets[i];
        // The loss is constant where Target is 0 or below.
        to[i] = targets[i] > T{0} ? slope : T{0};
      }
    });
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
  registry.AddCpuKernels<float, double>(
      "kldiv_loss", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>("kldiv_loss_grad", []<typename T>(PrepareContext& context) {
    return PrepareGrad<T>(context);
  });
}

}  // namespace skiff
