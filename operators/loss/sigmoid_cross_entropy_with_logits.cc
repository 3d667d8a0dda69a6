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
#include <atomic>
#include <cmath>
#include <memory>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/loss/kernels/element_grains.h"

namespace skiff {
namespace {

template <typename T>
class Labels {
 public:
  explicit Labels(const OpContext& context)
      : ignored_(static_cast<T>(context.IntAttr("ignore_index"))),
        normalize_(context.Attr<bool>("normalize")) {}

  bool IsIgnored(T label) const { return std::trunc(label) == ignored_; }

  // Returns the divisor of the losses. Counts are integers, so their order doesn't matter.
  T Divisor(const T* labels, int64_t count) const {
    if (!normalize_) return T{1};
    std::atomic<int64_t> counted{0};
    ParallelFor(count, kLossGrain, [&](int64_t begin, int64_t end) {
      int64_t found = 0;
      // Fluid's tolerance.
      for (int64_t i = begin; i < end; ++i) {
        found += std::abs(labels[i] - ignored_) > static_cast<T>(1e-6) ? 1 : 0;
      }
      counted.fetch_add(found, std::memory_order_relaxed);
    });
    return static_cast<T>(std::max<int64_t>(1, counted.load()));
  }

 private:
  T ignored_;
  bool normalize_;
};

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const Labels<T> labels(context);
  const int x = context.InputIndex("X");
  const int label = context.InputIndex("Label");
  const int weight = context.InputIndex("pos_weight");
  const int out = context.OutputIndex("Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const int64_t count = run.input(x).element_count();
    const T* logits = run.input(x).data<T>();
    const T* targets = run.input(label).data<T>();
    const T* weights = weight < 0 ? nullptr : run.input(weight).data<T>();
    T* losses = run.output(out).data<T>();
    const T divisor = labels.Divisor(targets, count);
    ParallelFor(count, kLogLossGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T logit = logits[i];
        // log1p is precise even where the exponential is too small to change 1.
        const T curve = std::log1p(std::exp(-std::abs(logit)));
        const T positive = logit < T{0} ? T{0} : logit;
        const T loss =
            positive - logit * targets[i] + (weights == nullptr ? T{1} : weights[i]) * curve;
        losses[i] = labels.IsIgnored(targets[i]) ? T{0} : loss / divisor;
      }
    });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const Labels<T> labels(context);
  const int x = context.InputIndex("X");
  const int label = context.InputIndex("Label");
  const int weight = context.InputIndex("pos_weight");
  const int gradient = context.InputIndex("Out@GRAD");
  const int dx = context.OutputIndex("X@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const int64_t count = run.input(x).element_count();
    const T* logits = run.input(x).data<T>();
    const T* targets = run.input(label).data<T>();
    const T* weights = weight < 0 ? nullptr : run.input(weight).data<T>();
    const T* from = run.input(gradient).data<T>();
    T* to = run.output(dx).data<T>();
    const T divisor = labels.Divisor(targets, count);
    ParallelFor(count, kLogLossGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T logit = logits[i];
        const T tail = std::exp(-std::abs(logit));
        const T share = (weights == nullptr ? T{1} : weights[i]) * (tail / (T{1} + tail));
        const T slope = logit > T{0} ? T{1} - share : share;
        to[i] = labels.IsIgnored(targets[i]) ? T{0} : from[i] * (slope - targets[i]) / divisor;
      }
    });
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
  OpDef grad = GradientOf(&def, {"Label", "Out@GRAD", "X", "pos_weight"}, {"X@GRAD"});
  grad.doc = "X@GRAD = Out@GRAD times the derivative of Out.";
  grad.in_place = {{"Out@GRAD", "X@GRAD"}};
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      "sigmoid_cross_entropy_with_logits",
      []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "sigmoid_cross_entropy_with_logits_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
