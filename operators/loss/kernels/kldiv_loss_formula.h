// The formulas of kldiv_loss and of its gradient, which kldiv_loss.cc states.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>

#include "framework/base/error.h"
#include "framework/op/registry.h"

namespace skiff {

// The losses of elements.
struct KldivLossFormula {
  static constexpr std::array kInputs = {"X", "Target"};
  static constexpr std::array kOutputs = {"Loss"};

  explicit KldivLossFormula(const OpContext&) {}

  template <typename T>
  constexpr std::array<T, 1> operator()(T x, T target) const {
    return {target > T{0} ? target * (std::log(target) - x) : T{0}};
  }
};

// Whether Loss is one number.
inline bool IsReduced(const OpContext& context) {
  return context.Attr<std::string>("reduction") != "none";
}

// The divisor of the sum of the losses.
class KldivDivisor {
 public:
  explicit KldivDivisor(const OpContext& context)
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
struct KldivGradients {
  constexpr void operator()(int64_t i) const {
    const T target = targets[i];
    const T slope = dlosses[i * step] / divisor * -target;
    // The loss is constant where Target is 0 or below.
    gradients[i] = target > T{0} ? slope : T{0};
  }

  const T* dlosses;
  const T* targets;
  T* gradients;  // may be the targets
  T divisor;
  int64_t step;
};

// Returns the kernel of the gradient. `for_each` calls a body for each element.
template <typename T, class ForEach>
std::unique_ptr<Kernel> PrepareKldivLossGrad(PrepareContext& context, ForEach for_each) {
  // A reduced loss has one gradient for all elements.
  const int64_t step = IsReduced(context) ? 0 : 1;
  const KldivDivisor divisor(context);
  const In<T> dloss(context, "Loss@GRAD");
  const In<T> target(context, "Target");
  const Out<T> dx(context, "X@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    for_each(run, target.count(run),
             KldivGradients<T>{.dlosses = dloss(run),
                               .targets = target(run),
                               .gradients = dx(run),
                               .divisor = static_cast<T>(divisor.For(target.shape(run))),
                               .step = step});
  });
}

}  // namespace skiff
