// adamax: MomentOut = b1 * Moment + (1 - b1) * g, InfNormOut = max(|g|, b2 * InfNorm + epsilon),
// ParamOut = Param - LearningRate / (1 - Beta1Pow) * MomentOut / InfNormOut.
//
// Source: Kingma & Ba 2015, algorithm 2, with Fluid's epsilon. Beta1Pow holds b1^t in step t. In
// Fluid, the program advances it. If fuse_optimizer has connected Beta1PowOut, the op does:
// Beta1PowOut = Beta1Pow * b1. For g, see kernels/update_op.h.
#include "operators/optimizer/kernels/register_update_op.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/optimizer/adamax.cc"
#include "hwy/foreach_target.h"
#include "operators/optimizer/kernels/update_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

#include "operators/optimizer/kernels/adamax_formula-inl.h"

UpdateLoopSet AdamaxLoops() { return LoopsOf<AdamaxFormula>(); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(AdamaxLoops);

UpdateOp AdamaxOp() {
  return {
      .type = "adamax",
      .doc =
          "MomentOut = b1 Moment + (1 - b1) Grad; InfNormOut = max(|Grad|, b2 InfNorm + "
          "epsilon); ParamOut = Param - lr / (1 - Beta1Pow) * MomentOut / InfNormOut; Beta1PowOut, "
          "which Fluid leaves to the program, = Beta1Pow b1.",
      .states = {{.input = "Moment",
                  .output = "MomentOut",
                  .doc = "The means of the gradients, each of its parameter's shape."},
                 {.input = "InfNorm",
                  .output = "InfNormOut",
                  .doc = "The largest of their magnitudes, decayed, each of its parameter's "
                         "shape."}},
      .scalars = {{.input = "Beta1Pow",
                   .output = "Beta1PowOut",
                   .doc = "One element: beta1 to the power of the step, from 1 on.",
                   .factor = "beta1"}},
      .attrs = {FloatAttr("beta1", 0.9f, "The decay of Moment."),
                FloatAttr("beta2", 0.999f, "The decay of InfNorm."),
                FloatAttr("epsilon", 1e-8f, "Keeps the quotient finite.")}};
}

}  // namespace

void RegisterAdamax(OpRegistry& registry) {
  RegisterUpdateOp(
      registry, AdamaxOp(), [](const OpContext&) { return HWY_DYNAMIC_DISPATCH(AdamaxLoops)(); },
      [](const OpContext&) { return RuleOf<HWY_NAMESPACE::AdamaxFormula>(); });
}

}  // namespace skiff
#endif  // HWY_ONCE
