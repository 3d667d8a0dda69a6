// adam: Moment1Out = b1 * Moment1 + (1 - b1) * g, Moment2Out = b2 * Moment2 + (1 - b2) * g²,
// ParamOut = Param - LearningRate * m / (sqrt(v) + epsilon) with the bias-corrected moments
// m = Moment1Out / (1 - Beta1Pow), v = Moment2Out / (1 - Beta2Pow).
//
// Source: Kingma & Ba 2015, algorithm 1, in the form of Fluid 2.x, which folds the corrections into
// step size and epsilon: lr * sqrt(1 - Beta2Pow) / (1 - Beta1Pow) and epsilon * sqrt(1 - Beta2Pow).
// Beta1Pow holds b1^t in step t (b1 in the first). Beta1PowOut = Beta1Pow * b1, unless
// use_global_beta_pow says that the program advances the powers itself. lazy_mode concerns sparse
// gradients only. For g, see kernels/update_op.h.
#include "framework/base/str_cat.h"
#include "operators/optimizer/kernels/adam_definition.h"
#include "operators/optimizer/kernels/register_update_op.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/optimizer/adam.cc"
#include "hwy/foreach_target.h"
#include "operators/optimizer/kernels/update_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

#include "operators/optimizer/kernels/adam_formula-inl.h"

UpdateLoopSet AdamLoops() { return LoopsOf<AdamFormula>(); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(AdamLoops);

UpdateOp AdamOp() {
  UpdateOp op = MakeAdamOp(
      "adam",
      "Moment1Out = b1 Moment1 + (1 - b1) Grad; Moment2Out = b2 Moment2 + (1 - b2) Grad²; "
      "ParamOut = Param - lr sqrt(1 - Beta2Pow) / (1 - Beta1Pow) * Moment1Out / "
      "(sqrt(Moment2Out) + epsilon sqrt(1 - Beta2Pow)); Beta1PowOut = Beta1Pow b1, "
      "Beta2PowOut = Beta2Pow b2.");
  op.merged_as = "merged_adam";
  return op;
}

// The same for lists of tensors, with Fluid's name and attributes: none for sparse gradients, which
// no list contains.
UpdateOp MergedAdamOp() {
  UpdateOp op = AdamOp();
  op.type = "merged_adam";
  op.merged_as = "";
  std::erase_if(op.attrs, [](const AttrDef& attr) {
    return attr.name == "lazy_mode" || attr.name == "min_row_size_to_use_multithread";
  });
  op.doc = StrCat("adam of many parameters. ", op.doc);
  return op;
}

}  // namespace

void RegisterAdam(OpRegistry& registry) {
  for (const UpdateOp& op : {AdamOp(), MergedAdamOp()}) {
    RegisterUpdateOp(
        registry, op, [](const OpContext&) { return HWY_DYNAMIC_DISPATCH(AdamLoops)(); },
        [](const OpContext&) { return RuleOf<HWY_NAMESPACE::AdamFormula>(); });
  }
}

}  // namespace skiff
#endif  // HWY_ONCE
