// sgd: ParamOut = Param - LearningRate * g. Source: Fluid's sgd. For g, see kernels/update_op.h.
#include "operators/optimizer/kernels/register_update_op.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/optimizer/sgd.cc"
#include "hwy/foreach_target.h"
#include "operators/optimizer/kernels/update_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

#include "operators/optimizer/kernels/sgd_formula-inl.h"

UpdateLoopSet SgdLoops() { return LoopsOf<SgdFormula>(); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(SgdLoops);

}  // namespace

void RegisterSgd(OpRegistry& registry) {
  RegisterUpdateOp(
      registry, {.type = "sgd", .doc = "ParamOut = Param - LearningRate * Grad. Fluid's sgd."},
      [](const OpContext&) { return HWY_DYNAMIC_DISPATCH(SgdLoops)(); },
      [](const OpContext&) { return RuleOf<HWY_NAMESPACE::SgdFormula>(); });
}

}  // namespace skiff
#endif  // HWY_ONCE
