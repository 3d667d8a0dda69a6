// adamw: Param * (1 - rate * coeff), then the step of adam at `rate`, which is
// LearningRate * lr_ratio. Without with_decay: the step of adam alone.
//
// Source: Loshchilov & Hutter 2019, algorithm 2, in the form of Fluid 2.x, where the learning rate
// multiplies the decay. As in Fluid's CUDA kernel, lr_ratio multiplies the rate in both places;
// Fluid's CPU kernel applies it to the decay only, and its Python refuses it on CPU. For the rest,
// see adam.cc.
#include "operators/optimizer/kernels/adam_definition.h"
#include "operators/optimizer/kernels/register_update_op.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/optimizer/adamw.cc"
#include "hwy/foreach_target.h"
#include "operators/optimizer/kernels/update_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

#include "operators/optimizer/kernels/adamw_formula-inl.h"

UpdateLoopSet AdamwLoops() { return LoopsOf<AdamwFormula>(); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(AdamwLoops);

UpdateOp AdamwOp() {
  UpdateOp op = MakeAdamOp("adamw",
                           "ParamOut = Param * (1 - lr lr_ratio coeff), with with_decay, then the "
                           "step of adam with the learning rate lr lr_ratio.");
  op.attrs.push_back(FloatAttr("lr_ratio", 1.0f, "Multiplies the learning rate."));
  op.attrs.push_back(FloatAttr("coeff", 0.01f, "The weight decay, with with_decay."));
  op.attrs.push_back(BoolAttr("with_decay", "Whether the parameters decay."));
  return op;
}

}  // namespace

void RegisterAdamw(OpRegistry& registry) {
  RegisterUpdateOp(
      registry, AdamwOp(), [](const OpContext&) { return HWY_DYNAMIC_DISPATCH(AdamwLoops)(); },
      [](const OpContext&) { return RuleOf<HWY_NAMESPACE::AdamwFormula>(); });
}

}  // namespace skiff
#endif  // HWY_ONCE
