// adagrad: MomentOut = Moment + g², ParamOut = Param - LearningRate * g / (sqrt(MomentOut) +
// epsilon); decayed_adagrad the same with MomentOut = decay * Moment + (1 - decay) * g².
//
// Source: Duchi, Hazan & Singer 2011 with a diagonal matrix, as Fluid has it (decayed_adagrad: Fluid
// 1.x; 2.6.2 has lost its kernel); g stands in update_op_shared.h.
#include "operators/optimizer/update_kernel_shared.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/optimizer/adagrad.cc"
#include "hwy/foreach_target.h"
#include "operators/optimizer/update_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

#include "operators/optimizer/adagrad_formula-inl.h"

UpdateLoopSet AdagradLoops() { return LoopsOf<AdagradFormula>(); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(AdagradLoops);

// The attribute decay is that of decayed_adagrad; the moment of adagrad is a sum.
class Adagrad final : public UpdateFormula {
 public:
  explicit Adagrad(const OpContext& context)
      : epsilon_(context.Attr<float>("epsilon")),
        kept_(context.HasAttr("decay") ? context.Attr<float>("decay") : 1.0),
        added_(context.HasAttr("decay") ? 1.0 - kept_ : 1.0) {}

  void SetCoefficients(const Parameter& parameter, double* coefficients) const override {
    using Formula = HWY_NAMESPACE::AdagradFormula;
    coefficients[Formula::kRate] = parameter.learning_rate;
    coefficients[Formula::kKept] = kept_;
    coefficients[Formula::kAdded] = added_;
    coefficients[Formula::kEpsilon] = epsilon_;
  }

 private:
  double epsilon_;
  double kept_;
  double added_;
};

UpdateOp AdagradOp() {
  return {.type = "adagrad",
          .doc =
              "MomentOut = Moment + Grad²; ParamOut = Param - LearningRate * Grad / "
              "(sqrt(MomentOut) + epsilon).",
          .states = {{.input = "Moment",
                      .output = "MomentOut",
                      .doc = "The sums of the squared gradients, each of its parameter's shape."}},
          .attrs = {FloatAttr("epsilon", 1e-6f, "Keeps the quotient finite.")},
          .sparse_rule = SparseRule::kTouchedRows};
}

UpdateOp DecayedAdagradOp() {
  UpdateOp op = AdagradOp();
  op.sparse_rule = SparseRule::kAllRows;
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
  for (const UpdateOp& op : {AdagradOp(), DecayedAdagradOp()}) {
    RegisterUpdateOp(
        registry, op, [](const OpContext&) { return HWY_DYNAMIC_DISPATCH(AdagradLoops)(); },
        [](const OpContext& context) { return std::make_unique<Adagrad>(context); });
  }
}

}  // namespace skiff
#endif  // HWY_ONCE
