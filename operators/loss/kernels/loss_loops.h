// The float32 loops of the formulas of losses (kernels/*_formula-inl.h).
#pragma once

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
LossLoops BceLossLoops();
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

// Adds the CPU kernels of a loss that is nothing but a formula, and of its gradient. `grain` is the
// number of losses that is worth a thread, `grad_grain` the number of gradients.
template <class Formula, class GradFormula, LossLoops (*kLoops)()>
void AddLossKernels(OpRegistry& registry, std::string_view type, int64_t grain,
                    int64_t grad_grain) {
  AddFormulaKernels<Formula>(registry, type, ForwardLoop<kLoops>, grain);
  AddFormulaKernels<GradFormula>(registry, std::string(type) + "_grad", GradLoop<kLoops>,
                                 grad_grain);
}

}  // namespace skiff
