// The float32 loops of the formulas of losses (kernels/*_formula-inl.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "framework/op/registry.h"
#include "operators/common/element_formula.h"

namespace skiff {

// Make the loops of an op and of its gradient op.
struct LossLoops {
  FloatLoopMaker forward;
  FloatLoopMaker grad;
};

// Return the functions for the instruction set in use.
LossLoops HuberLossLoops();
LossLoops KldivLossLoops();
LossLoops LogLossLoops();
LossLoops MarginRankLossLoops();
LossLoops SigmoidLossLoops();
LossLoops SmoothL1LossLoops();

// Make one of the loops, for the instruction set that is in use when they are called.
template <LossLoops (*kLoops)()>
ElementLoop<float> ForwardLoop(const OpContext& context) {
  return kLoops().forward(context);
}
template <LossLoops (*kLoops)()>
ElementLoop<float> GradLoop(const OpContext& context) {
  return kLoops().grad(context);
}

// Adds the CPU kernels of a loss that is nothing but a formula, and of its gradient. Of so many
// losses (gradients) each is worth a thread.
template <class Formula, class GradFormula, LossLoops (*kLoops)()>
void AddLossKernels(OpRegistry& registry, std::string_view type, int64_t grain,
                    int64_t grad_grain) {
  AddFormulaKernels<Formula>(registry, type, ForwardLoop<kLoops>, grain);
  AddFormulaKernels<GradFormula>(registry, std::string(type) + "_grad", GradLoop<kLoops>,
                                 grad_grain);
}

// The number of losses that are computed at once before they are summed: few enough for the stack.
inline constexpr int64_t kSummedLosses = 1024;

// Returns the sum of losses. It is of float64 numbers, so that neither small losses are lost beside
// large ones nor large ones overflow before a mean is taken. Its order depends on the count alone.
template <typename T>
double SumOfLosses(const T* losses, int64_t count) {
  // Independent sums, so that an addition needn't wait for the one before.
  constexpr int64_t kSums = 8;
  double sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (int64_t k = 0; k < kSums; ++k) sums[k] += static_cast<double>(losses[i + k]);
  }
  double sum = 0;
  for (int64_t k = 0; i >= kSums && k < kSums; ++k) sum += sums[k];
  for (; i < count; ++i) sum += static_cast<double>(losses[i]);
  return sum;
}

// Returns the sum of what a loop computes for an output at positions [0, count). The output must be
// nullptr in `arrays`.
template <typename T>
double SumOfOutput(const ElementLoop<T>& loop, const ElementArrays<T>& arrays, size_t output,
                   int64_t count) {
  T losses[kSummedLosses];
  double sum = 0;
  for (int64_t first = 0; first < count; first += kSummedLosses) {
    ElementArrays<T> part = arrays.From(first);
    part.outputs[output] = losses;
    const int64_t size = std::min(kSummedLosses, count - first);
    loop(part, size);
    sum += SumOfLosses(losses, size);
  }
  return sum;
}

}  // namespace skiff
