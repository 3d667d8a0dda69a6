// The float32 loops of the formulas of losses (kernels/*_formula-inl.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/op/registry.h"
#include "operators/common/element_formula.h"

namespace skiff {

// What makes the loops of an op and of its gradient op.
struct LossLoops {
  ElementLoop<float> (*forward)(const OpContext& context);
  ElementLoop<float> (*grad)(const OpContext& context);
};

// Return them for the instruction set in use.
LossLoops HuberLossLoops();
LossLoops KldivLossLoops();
LossLoops LogLossLoops();
LossLoops MarginRankLossLoops();
LossLoops SigmoidLossLoops();
LossLoops SmoothL1LossLoops();

// The same as what PrepareFormula takes; it looks for the instruction set when it is called.
inline FloatLoopMaker ForwardLoopOf(LossLoops (*loops)()) {
  return [loops](const OpContext& context) { return loops().forward(context); };
}
inline FloatLoopMaker GradLoopOf(LossLoops (*loops)()) {
  return [loops](const OpContext& context) { return loops().grad(context); };
}

// Adds the CPU kernels of a loss that is nothing but a formula, and of its gradient. `grain` is the
// number of losses that is worth a thread.
template <class Formula, class GradFormula>
void AddLossKernels(OpRegistry& registry, std::string_view type, LossLoops (*loops)(),
                    int64_t grain, int64_t grad_grain) {
  AddFormulaKernels<Formula>(registry, type, ForwardLoopOf(loops), grain);
  AddFormulaKernels<GradFormula>(registry, std::string(type) + "_grad", GradLoopOf(loops),
                                 grad_grain);
}

}  // namespace skiff
