// adam: Moment1Out = b1 * Moment1 + (1 - b1) * g, Moment2Out = b2 * Moment2 + (1 - b2) * g²,
// ParamOut = Param - LearningRate * m / (sqrt(v) + epsilon) with the moments freed of their bias,
// m = Moment1Out / (1 - Beta1Pow), v = Moment2Out / (1 - Beta2Pow).
//
// Source: Kingma & Ba 2015, algorithm 1, in the form of Fluid 2.x, which folds the corrections into
// step size and epsilon: lr * sqrt(1 - Beta2Pow) / (1 - Beta1Pow) and epsilon * sqrt(1 - Beta2Pow).
// Beta1Pow holds b1^t in step t (b1 in the first). Beta1PowOut = Beta1Pow * b1 unless
// use_global_beta_pow, where the program advances the powers itself. lazy_mode concerns sparse
// gradients only. g stands in update_op_shared.h.
#include <cmath>

#include "operators/optimizer/update_kernel_shared.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/optimizer/adam.cc"
#include "hwy/foreach_target.h"
#include "operators/optimizer/update_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

#include "operators/optimizer/adam_formula-inl.h"

UpdateLoopSet AdamLoops() { return LoopsOf<AdamFormula>(); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(AdamLoops);

class Adam final : public UpdateFormula {
 public:
  explicit Adam(const OpContext& context)
      : beta1_(context, "beta1", "Beta1Tensor"),
        beta2_(context, "beta2", "Beta2Tensor"),
        epsilon_(context, "epsilon", "EpsilonTensor"),
        beta1_pow_(context, "Beta1Pow"),
        beta2_pow_(context, "Beta2Pow") {}

  void SetCoefficients(const Parameter& parameter, double* coefficients) const override {
    using Formula = HWY_NAMESPACE::AdamFormula;
    const double beta1 = beta1_.Value(parameter.run);
    const double beta2 = beta2_.Value(parameter.run);
    const double correction = std::sqrt(1.0 - beta2_pow_.Value(parameter.run, parameter.index));
    coefficients[Formula::kBeta1] = beta1;
    coefficients[Formula::kRest1] = 1.0 - beta1;
    coefficients[Formula::kBeta2] = beta2;
    coefficients[Formula::kRest2] = 1.0 - beta2;
    coefficients[Formula::kStepSize] = parameter.learning_rate * correction /
                                       (1.0 - beta1_pow_.Value(parameter.run, parameter.index));
    coefficients[Formula::kEpsilon] = epsilon_.Value(parameter.run) * correction;
  }

  void Finish(const KernelContext& run, size_t i) const override {
    beta1_pow_.Advance(run, i, beta1_.Value(run));
    beta2_pow_.Advance(run, i, beta2_.Value(run));
  }

 private:
  OverriddenNumber beta1_;
  OverriddenNumber beta2_;
  OverriddenNumber epsilon_;
  BetaPower beta1_pow_;
  BetaPower beta2_pow_;
};

SlotDef Override(const char* slot, const char* attr) {
  return {.name = slot,
          .doc = StrCat("One element: goes before the attribute ", attr, "."),
          .dispensable = true};
}

UpdateOp AdamOp() {
  return {
      .type = "adam",
      .doc =
          "Moment1Out = b1 Moment1 + (1 - b1) Grad; Moment2Out = b2 Moment2 + (1 - b2) Grad²; "
          "ParamOut = Param - lr sqrt(1 - Beta2Pow) / (1 - Beta1Pow) * Moment1Out / "
          "(sqrt(Moment2Out) + epsilon sqrt(1 - Beta2Pow)); Beta1PowOut = Beta1Pow b1, "
          "Beta2PowOut = Beta2Pow b2.",
      .states = {{.input = "Moment1",
                  .output = "Moment1Out",
                  .doc = "The means of the gradients, each of its parameter's shape."},
                 {.input = "Moment2",
                  .output = "Moment2Out",
                  .doc = "The means of their squares, each of its parameter's shape."}},
      .scalars = {{.input = "Beta1Pow",
                   .output = "Beta1PowOut",
                   .doc = "One element: beta1 to the power of the step, from 1 on."},
                  {.input = "Beta2Pow",
                   .output = "Beta2PowOut",
                   .doc = "One element: beta2 to the power of the step, from 1 on."}},
      .shared_scalars = {Override("Beta1Tensor", "beta1"), Override("Beta2Tensor", "beta2"),
                         Override("EpsilonTensor", "epsilon")},
      .attrs = {FloatAttr("beta1", 0.9f, "The decay of Moment1."),
                FloatAttr("beta2", 0.999f, "The decay of Moment2."),
                FloatAttr("epsilon", 1e-8f, "Keeps the quotient finite."),
                BoolAttr("lazy_mode", "Concerns sparse gradients only."),
                {.name = "min_row_size_to_use_multithread",
                 .type = AttrType::kLong,
                 .default_value = int64_t{1000},
                 .doc = "A hint of Fluid's; ignored."},
                BoolAttr("use_global_beta_pow", "The program advances the powers, not this op.")},
      .merged_as = "merged_adam"};
}

// The same for lists of tensors, under the name that Fluid has for it.
UpdateOp MergedAdamOp() {
  UpdateOp op = AdamOp();
  op.type = "merged_adam";
  op.merged_as = "";
  op.doc = "adam of many parameters. " + op.doc;
  return op;
}

}  // namespace

void RegisterAdam(OpRegistry& registry) {
  for (const UpdateOp& op : {AdamOp(), MergedAdamOp()}) {
    RegisterUpdateOp(
        registry, op, [] { return HWY_DYNAMIC_DISPATCH(AdamLoops)(); },
        [](const OpContext& context) { return std::make_unique<Adam>(context); });
  }
}

}  // namespace skiff
#endif  // HWY_ONCE
