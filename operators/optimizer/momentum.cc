// momentum: VelocityOut = mu * Velocity + g, ParamOut = Param - LearningRate * VelocityOut; with
// Nesterov's form ParamOut = Param - LearningRate * (g + mu * VelocityOut).
//
// Source: Fluid's momentum, and its merged form for the order of rescaling and decay. For g, see
// kernels/update_op.h.
#include "framework/base/str_cat.h"
#include "operators/optimizer/kernels/register_update_op.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/optimizer/momentum.cc"
#include "hwy/foreach_target.h"
#include "operators/optimizer/kernels/update_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

#include "operators/optimizer/kernels/momentum_formula-inl.h"

UpdateLoopSet MomentumLoops() { return LoopsOf<MomentumFormula>(); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(MomentumLoops);

UpdateOp MomentumOp() {
  return {.type = "momentum",
          .doc =
              "VelocityOut = mu * Velocity + g; ParamOut = Param - LearningRate * VelocityOut, "
              "or Param - LearningRate * (g + mu * VelocityOut) with use_nesterov; g = Grad * "
              "rescale_grad (+ regularization_coeff * Param with \"l2_decay\").",
          .states = {{.input = "Velocity",
                      .output = "VelocityOut",
                      .doc = "The velocities, each of its parameter's shape."}},
          .attrs = {{.name = "mu", .type = AttrType::kFloat, .doc = "The momentum coefficient."},
                    BoolAttr("use_nesterov", "Nesterov's form.")},
          .merged_as = "merged_momentum"};
}

// The same for lists of tensors, with Fluid's name.
UpdateOp MergedMomentumOp() {
  UpdateOp op = MomentumOp();
  op.type = "merged_momentum";
  op.merged_as = "";
  op.doc = StrCat("momentum of many parameters, each with its own decay. ", op.doc);
  op.attrs.push_back({.name = "regularization_method",
                      .type = AttrType::kStrings,
                      .default_value = std::vector<std::string>{""},
                      .doc = "\"\", \"l1_decay\" or \"l2_decay\": one, or one per parameter."});
  op.attrs.push_back({.name = "regularization_coeff",
                      .type = AttrType::kFloats,
                      .default_value = std::vector<float>{0.0f},
                      .doc = "Of regularization_method: one, or one per parameter."});
  op.list_attrs = {"regularization_method", "regularization_coeff"};
  return op;
}

}  // namespace

void RegisterMomentum(OpRegistry& registry) {
  for (const UpdateOp& op : {MomentumOp(), MergedMomentumOp()}) {
    RegisterUpdateOp(
        registry, op, [](const OpContext&) { return HWY_DYNAMIC_DISPATCH(MomentumLoops)(); },
        [](const OpContext&) { return RuleOf<HWY_NAMESPACE::MomentumFormula>(); });
  }
}

}  // namespace skiff
#endif  // HWY_ONCE
