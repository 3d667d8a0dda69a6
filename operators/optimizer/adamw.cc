// adamw: Param * (1 - rate * coeff), then the step of adam at `rate`, which is
// LearningRate * lr_ratio. Without with_decay: the step of adam alone.
//
// Source: Loshchilov & Hutter 2019, algorithm 2, in the form of Fluid 2.x, where the learning rate
// multiplies the decay. As in its CUDA kernel lr_ratio multiplies the rate wherever that stands;
// Fluid's CPU kernel leaves it out of all but the decay, and its Python refuses it on CPU. For the
// rest see adam.cc.
#include "operators/optimizer/adam_shared.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/optimizer/adamw.cc"
#include "hwy/foreach_target.h"
#include "operators/optimizer/update_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

#include "operators/optimizer/adamw_formula-inl.h"

UpdateLoopSet AdamwLoops() { return LoopsOf<AdamwFormula>(); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(AdamwLoops);

class Adamw final : public UpdateFormula {
 public:
  explicit Adamw(const OpContext& context)
      : coefficients_(context),
        lr_ratio_(context.Attr<float>("lr_ratio")),
        decay_(context.Attr<bool>("with_decay") ? context.Attr<float>("coeff") : 0.0) {}

  void SetCoefficients(const Parameter& parameter, double* coefficients) const override {
    const double rate = parameter.learning_rate * lr_ratio_;
    coefficients_.Set(parameter, rate, coefficients);
    coefficients[HWY_NAMESPACE::AdamwFormula::kKept] = 1.0 - rate * decay_;
  }
  void Finish(const KernelContext& run, size_t i) const override { coefficients_.Finish(run, i); }

 private:
  AdamCoefficients coefficients_;
  double lr_ratio_;
  double decay_;
};

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
      [](const OpContext& context) { return std::make_unique<Adamw>(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
