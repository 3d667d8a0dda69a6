// lamb: Moment1Out = b1 * Moment1 + (1 - b1) * g, Moment2Out = b2 * Moment2 + (1 - b2) * g²,
// step = m / (sqrt(v) + epsilon) + weight_decay * Param with the bias-corrected moments
// m = Moment1Out / (1 - Beta1Pow), v = Moment2Out / (1 - Beta2Pow),
// ParamOut = Param - LearningRate * ratio * step with ratio = |Param| / |step| in L2 norms.
//
// Source: You et al. 2020, algorithm 2 with phi(x) = x, in the form of Fluid 2.x. The ratio is 1 if
// a norm is 0 or, unless always_adapt is true, if weight_decay is 0. The norms are those of whole
// parameters. For g, see kernels/update_op.h.
#include "operators/optimizer/kernels/adam_definition.h"
#include "operators/optimizer/kernels/register_update_op.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/optimizer/lamb.cc"
#include "hwy/foreach_target.h"
#include "operators/optimizer/kernels/update_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

#include "operators/optimizer/kernels/lamb_formula-inl.h"

UpdateLoopSet LambLoops() { return LoopsOf<LambFormula::Apply, LambFormula::Step>(); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(LambLoops);

UpdateOp LambOp() {
  UpdateOp op{
      .type = "lamb",
      .doc =
          "Moment1Out = b1 Moment1 + (1 - b1) Grad; Moment2Out = b2 Moment2 + (1 - b2) Grad²; step "
          "= m / (sqrt(v) + epsilon) + weight_decay Param with m = Moment1Out / (1 - Beta1Pow), v "
          "= Moment2Out / (1 - Beta2Pow); ParamOut = Param - lr |Param| / |step| step in L2 norms; "
          "Beta1PowOut = Beta1Pow b1, Beta2PowOut = Beta2Pow b2. Where a norm is 0, or "
          "weight_decay is and always_adapt is false, ParamOut = Param - lr step.",
      .states = AdamMoments(),
      .scalars = AdamPowers(),
      .attrs = AdamAttrs(1e-6f),
      .needs_norms = true};
  op.attrs.push_back({.name = "weight_decay",
                      .type = AttrType::kFloat,
                      .doc = "The factor of the parameter that is added to its step."});
  op.attrs.push_back(BoolAttr("always_adapt", "The ratio of norms also for a weight_decay of 0."));
  return op;
}

}  // namespace

void RegisterLamb(OpRegistry& registry) {
  RegisterUpdateOp(
      registry, LambOp(), [](const OpContext&) { return HWY_DYNAMIC_DISPATCH(LambLoops)(); },
      [](const OpContext&) { return RuleOf<HWY_NAMESPACE::LambFormula::Apply>(); });
}

}  // namespace skiff
#endif  // HWY_ONCE
