// lars_momentum: VelocityOut = mu * Velocity + rate * (g + decay * Param),
// ParamOut = Param - VelocityOut, where decay is the parameter's entry of lars_weight_decay and
// rate = LearningRate * lars_coeff * |Param| / (|g| + decay * |Param| + epsilon) in L2 norms, or
// LearningRate itself if the parameter does not adapt.
//
// Source: You, Gitman & Ginsburg 2017, algorithm 1, in Fluid's form. For g, see
// kernels/update_op.h. Fluid's versions and kernels disagree on which parameters adapt. Here
// lars_policy chooses: "decay_and_norms" adapts those with decay > 0 and both norms above 0 (Fluid
// since 2020, and its CPU kernel; its accuracies on ResNet-50 were measured with this), so that a
// parameter excluded from decay is updated as by momentum; "norms" adapts those with both norms
// above 0 (Fluid's CUDA kernel since 2022). The norms are those of whole parameters.
#include "operators/optimizer/kernels/register_update_op.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/optimizer/lars_momentum.cc"
#include "hwy/foreach_target.h"
#include "operators/optimizer/kernels/update_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

#include "operators/optimizer/kernels/lars_momentum_formula-inl.h"

UpdateLoopSet LarsMomentumLoops() { return LoopsOf<LarsMomentumFormula>(); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(LarsMomentumLoops);

constexpr const char* kDecayAndNorms = "decay_and_norms";
constexpr const char* kNorms = "norms";

UpdateOp LarsMomentumOp() {
  return {
      .type = "lars_momentum",
      .doc =
          "VelocityOut = mu * Velocity + rate * (Grad + decay * Param); ParamOut = Param - "
          "VelocityOut; rate = LearningRate * lars_coeff * |Param| / (|Grad| + decay * |Param| + "
          "epsilon) in L2 norms, or LearningRate where lars_policy says that the parameter does "
          "not adapt; decay: its entry of lars_weight_decay.",
      .states = {{.input = "Velocity",
                  .output = "VelocityOut",
                  .doc = "The velocities, each of its parameter's shape."}},
      .attrs = {{.name = "mu", .type = AttrType::kFloat, .doc = "The momentum coefficient."},
                FloatAttr("lars_coeff", 0.001f, "How far a parameter moves, relative to its norm."),
                {.name = "lars_weight_decay",
                 .type = AttrType::kFloats,
                 .default_value = std::vector<float>{0.0005f},
                 .doc = "The weight decay: one, or one per parameter."},
                FloatAttr("epsilon", 0.0f, "Added to the norms in the denominator."),
                ChoiceAttr(
                    "lars_policy", kDecayAndNorms, {kDecayAndNorms, kNorms},
                    "Which parameters adapt: \"decay_and_norms\": those with a decay above 0 "
                    "and norms above 0; \"norms\": those with norms above 0.")},
      .list_attrs = {"lars_weight_decay"},
      .needs_norms = true};
}

}  // namespace

void RegisterLarsMomentum(OpRegistry& registry) {
  RegisterUpdateOp(
      registry, LarsMomentumOp(),
      [](const OpContext&) { return HWY_DYNAMIC_DISPATCH(LarsMomentumLoops)(); },
      [](const OpContext&) { return RuleOf<HWY_NAMESPACE::LarsMomentumFormula>(); });
}

}  // namespace skiff
#endif  // HWY_ONCE
