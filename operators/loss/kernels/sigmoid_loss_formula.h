// The formulas of sigmoid_cross_entropy_with_logits, whose source states them.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>

#include "framework/op/registry.h"

namespace skiff {

// Labels that count or not.
template <typename T>
struct SigmoidLabels {
  constexpr bool IsIgnored(T label) const { return std::trunc(label) == ignored; }
  // Whether the divisor counts the label. Fluid's tolerance.
  constexpr bool IsCounted(T label) const {
    return std::abs(label - ignored) > static_cast<T>(1e-6);
  }

  T ignored;
};

// What the op and its gradient read. Divisor is a place's: divisor() is the number of labels that
// count, at least 1, or 1.
template <typename T, class Divisor>
struct SigmoidInputs {
  constexpr T Weight(int64_t i) const { return weights == nullptr ? T{1} : weights[i]; }
  // Returns what becomes of the value of element i.
  constexpr T Normalized(int64_t i, T value) const {
    return of_labels.IsIgnored(labels[i]) ? T{0} : value / divisor();
  }

  const T* logits;
  const T* labels;
  const T* weights;  // 1 if nullptr
  Divisor divisor;
  SigmoidLabels<T> of_labels;
};

template <typename T, class Divisor>
struct SigmoidLosses {
  constexpr void operator()(int64_t i) const {
    const T logit = in.logits[i];
    // log1p is precise even where the exponential is too small to change 1.
    const T curve = std::log1p(std::exp(-std::abs(logit)));
    const T positive = logit < T{0} ? T{0} : logit;
    losses[i] = in.Normalized(i, positive - logit * in.labels[i] + in.Weight(i) * curve);
  }

  SigmoidInputs<T, Divisor> in;
  T* losses;  // may be the logits
};

template <typename T, class Divisor>
struct SigmoidGradients {
  constexpr void operator()(int64_t i) const {
    const T logit = in.logits[i];
    const T tail = std::exp(-std::abs(logit));
    const T share = in.Weight(i) * (tail / (T{1} + tail));
    const T slope = logit > T{0} ? T{1} - share : share;
    gradients[i] = in.Normalized(i, dlosses[i] * (slope - in.labels[i]));
  }

  SigmoidInputs<T, Divisor> in;
  const T* dlosses;
  T* gradients;  // may be dlosses
};

// The arguments of the op or of its gradient. CountLabels is a place's: made of a PrepareContext,
// count_labels(run, of_labels, labels, count) returns the Divisor with `normalize`, and
// CountLabels::Divisor() is 1.
template <typename T, class CountLabels>
class SigmoidArguments {
 public:
  using Divisor = typename CountLabels::Divisor;

  explicit SigmoidArguments(PrepareContext& context)
      : logits_(context, "X"),
        labels_(context, "Label"),
        weights_(context, "pos_weight"),
        of_labels_{static_cast<T>(context.IntAttr("ignore_index"))},
        normalize_(context.Attr<bool>("normalize")),
        count_labels_(context) {}

  int64_t count(const KernelContext& run) const { return logits_.count(run); }
  SigmoidInputs<T, Divisor> operator()(const KernelContext& run) const {
    return {.logits = logits_(run),
            .labels = labels_(run),
            .weights = weights_(run),
            .divisor =
                normalize_ ? count_labels_(run, of_labels_, labels_(run), count(run)) : Divisor(),
            .of_labels = of_labels_};
  }

 private:
  In<T> logits_;
  In<T> labels_;
  In<T> weights_;
  SigmoidLabels<T> of_labels_;
  bool normalize_;
  CountLabels count_labels_;
};

// Return the kernels. `for_each` calls a body for each element.
template <typename T, class CountLabels, class ForEach>
std::unique_ptr<Kernel> PrepareSigmoidLoss(PrepareContext& context, ForEach for_each) {
  const SigmoidArguments<T, CountLabels> arguments(context);
  const Out<T> out(context, "Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    for_each(run, arguments.count(run), SigmoidLosses{arguments(run), out(run)});
  });
}
template <typename T, class CountLabels, class ForEach>
std::unique_ptr<Kernel> PrepareSigmoidLossGrad(PrepareContext& context, ForEach for_each) {
  const SigmoidArguments<T, CountLabels> arguments(context);
  const In<T> dout(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    for_each(run, arguments.count(run), SigmoidGradients{arguments(run), dout(run), dx(run)});
  });
}

}  // namespace skiff
