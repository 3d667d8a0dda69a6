// adagrad: MomentOut = Moment + g², ParamOut = Param - LearningRate * g / (sqrt(MomentOut) +
// epsilon); decayed_adagrad does the same with MomentOut = decay * Moment + (1 - decay) * g².
//
// Source: Duchi, Hazan & Singer 2011 with a diagonal matrix, in Fluid's form (decayed_adagrad is in
// Fluid 1.x; 2.6.2 no longer has its kernel). For g, see kernels/update_op.h.
#include "operators/optimizer/kernels/register_update_op.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/optimizer/adagrad.cc"
#include "hwy/foreach_target.h"
#include "operators/optimizer/kernels/update_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

#include "operators/optimizer/kernels/adagrad_formula-inl.h"

UpdateLoopSet AdagradLoops() { return LoopsOf<AdagradFormula>(); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(AdagradLoops);

UpdateOp AdagradOp() {
  return {.type = "adagrad",
          .doc =
              "MomentOut = Moment + Grad²; ParamOut = Param - LearningRate * Grad / "
              "(sqrt(MomentOut) + epsilon).",
          .states = {{.input = "Moment",
                      .output = "MomentOut",
                      .doc = "The sums of the squared gradients, each of its parameter's shape."}},
          .attrs = {FloatAttr(
              "epsilon", 1e-6f,
              "Keeps the quotient finite; with 0 it is NaN where all gradients were 0.")}};
}

UpdateOp DecayedAdagradOp() {
  UpdateOp op = AdagradOp();
  op.type = "decayed_adagrad";
  op.doc =
      "MomentOut = decay * Moment + (1 - decay) * Grad²; ParamOut = Param - LearningRate * Grad / "
      "(sqrt(MomentOut) + epsilon).";
  op.states[0].doc = "The means of the squared gradients, each of its parameter's shape.";
  op.attrs.push_back(FloatAttr("decay", 0.95f, "The decay of Moment."));
  return op;
}

}  // namespace

void RegisterAdagrad(OpRegistry& registry) {
  const auto loops = [](const OpContext&) { return HWY_DYNAMIC_DISPATCH(AdagradLoops)(); };
  RegisterUpdateOp(registry, AdagradOp(), loops,
                   [](const OpContext&) { return RuleOf<HWY_NAMESPACE::AdagradFormula>(); });
  RegisterUpdateOp(registry, DecayedAdagradOp(), loops,
                   [](const OpContext&) { return RuleOf<HWY_NAMESPACE::DecayedAdagradFormula>(); });
}

}  // namespace skiff
#endif  // HWY_ONCE
