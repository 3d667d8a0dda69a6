// adadelta: AvgSquaredGradOut = rho * AvgSquaredGrad + (1 - rho) * g²,
// update = sqrt((AvgSquaredUpdate + epsilon) / (AvgSquaredGradOut + epsilon)) * g,
// AvgSquaredUpdateOut = rho * AvgSquaredUpdate + (1 - rho) * update²,
// ParamOut = Param - LearningRate * update.
//
// Source: Zeiler 2012, algorithm 1, which has a LearningRate of 1, in the form of Fluid 2.x. For g,
// see kernels/update_op.h.
#include "operators/optimizer/kernels/register_update_op.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/optimizer/adadelta.cc"
#include "hwy/foreach_target.h"
#include "operators/optimizer/kernels/update_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

#include "operators/optimizer/kernels/adadelta_formula-inl.h"

UpdateLoopSet AdadeltaLoops() { return LoopsOf<AdadeltaFormula>(); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(AdadeltaLoops);

UpdateOp AdadeltaOp() {
  return {.type = "adadelta",
          .doc =
              "AvgSquaredGradOut = rho AvgSquaredGrad + (1 - rho) Grad²; update = "
              "sqrt((AvgSquaredUpdate + epsilon) / (AvgSquaredGradOut + epsilon)) Grad; "
              "AvgSquaredUpdateOut = rho AvgSquaredUpdate + (1 - rho) update²; ParamOut = Param - "
              "LearningRate update.",
          .states = {{.input = "AvgSquaredGrad",
                      .output = "AvgSquaredGradOut",
                      .doc = "The means of the squared gradients, each of its parameter's shape."},
                     {.input = "AvgSquaredUpdate",
                      .output = "AvgSquaredUpdateOut",
                      .doc = "The means of the squared updates, each of its parameter's shape."}},
          .attrs = {FloatAttr("rho", 0.95f, "The decay of the means."),
                    FloatAttr("epsilon", 1e-6f,
                              "Keeps the quotient finite, and makes the first updates nonzero.")}};
}

}  // namespace

void RegisterAdadelta(OpRegistry& registry) {
  RegisterUpdateOp(
      registry, AdadeltaOp(),
      [](const OpContext&) { return HWY_DYNAMIC_DISPATCH(AdadeltaLoops)(); },
      [](const OpContext&) { return RuleOf<HWY_NAMESPACE::AdadeltaFormula>(); });
}

}  // namespace skiff
#endif  // HWY_ONCE
