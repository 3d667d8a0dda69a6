// rmsprop: MeanSquareOut = decay * MeanSquare + (1 - decay) * g²,
// MomentOut = momentum * Moment + LearningRate * g / sqrt(MeanSquareOut + epsilon),
// ParamOut = Param - MomentOut. Centered: MeanGradOut = decay * MeanGrad + (1 - decay) * g, and
// max(MeanSquareOut - MeanGradOut², 0) instead of MeanSquareOut under the root.
//
// Source: Tieleman & Hinton 2012; centered: Graves 2013, equations 38 to 45. Both in Fluid's form,
// except for the max: constant gradients have a variance of 0, which rounding may turn into a
// negative number and Fluid's root then into NaN. For g, see kernels/update_op.h.
#include "operators/optimizer/kernels/register_update_op.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/optimizer/rmsprop.cc"
#include "hwy/foreach_target.h"
#include "operators/optimizer/kernels/update_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

#include "operators/optimizer/kernels/rmsprop_formula-inl.h"

UpdateLoopSet RmspropLoops(bool is_centered) {
  return is_centered ? LoopsOf<RmspropFormula<true>>() : LoopsOf<RmspropFormula<false>>();
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(RmspropLoops);

UpdateOp RmspropOp() {
  return {
      .type = "rmsprop",
      .doc =
          "MeanSquareOut = decay MeanSquare + (1 - decay) Grad²; MomentOut = momentum Moment + "
          "LearningRate Grad / sqrt(MeanSquareOut + epsilon); ParamOut = Param - MomentOut. With "
          "centered, MeanGradOut = decay MeanGrad + (1 - decay) Grad, and the root is that of "
          "max(MeanSquareOut - MeanGradOut², 0) + epsilon; else MeanGradOut = MeanGrad.",
      .states = {{.input = "MeanSquare",
                  .output = "MeanSquareOut",
                  .doc = "The means of the squared gradients, each of its parameter's shape."},
                 {.input = "Moment",
                  .output = "MomentOut",
                  .doc = "The velocities, each of its parameter's shape."},
                 {.input = "MeanGrad",
                  .output = "MeanGradOut",
                  .doc = "The means of the gradients, each of its parameter's shape; unused "
                         "unless centered, but present as in Fluid's programs."}},
      .attrs = {
          FloatAttr("decay", 0.9f, "The decay of the means."),
          FloatAttr("momentum", 0.0f, "The momentum coefficient."),
          FloatAttr("epsilon", 1e-10f,
                    "Keeps the quotient finite; with 0 it is NaN where all gradients were 0."),
          BoolAttr("centered", "Whether the variance is taken instead of the mean square.")}};
}

}  // namespace

void RegisterRmsprop(OpRegistry& registry) {
  RegisterUpdateOp(
      registry, RmspropOp(),
      [](const OpContext& context) {
        return HWY_DYNAMIC_DISPATCH(RmspropLoops)(context.Attr<bool>("centered"));
      },
      [](const OpContext& context) {
        return context.Attr<bool>("centered") ? RuleOf<HWY_NAMESPACE::RmspropFormula<true>>()
                                              : RuleOf<HWY_NAMESPACE::RmspropFormula<false>>();
      });
}

}  // namespace skiff
#endif  // HWY_ONCE
