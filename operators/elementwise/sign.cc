// sign: Out = 1 where X > 0, -1 where X < 0, else X (0, and NaN stays NaN). Source: Fluid's sign.
//
// The gradient is Fluid's: the op scale with a factor of 0 on Out@GRAD.
#include <utility>

#include "framework/op/grad.h"
#include "operators/elementwise/kernels/unary.h"

namespace skiff {
namespace {

#include "operators/elementwise/kernels/sign_formula-inl.h"

std::vector<Op> SignGradient(const GradContext& context) {
  Op grad("scale");
  grad.attrs = context.forward().attrs;
  grad.SetInput("X", context.OutputGrad("Out")).SetOutput("Out", context.InputGrad("X"));
  grad.SetAttr("scale", 0.0f).SetAttr("bias", 0.0f).SetAttr("bias_after_scale", true);
  return {std::move(grad)};
}

}  // namespace

void RegisterSign(OpRegistry& registry) {
  OpDef def = UnaryOpDef(SignFormula::kFacts);
  def.grad = SignGradient;
  registry.Add(std::move(def));
  AddScalarUnaryKernel<SignFormula, float>(registry);
  AddScalarUnaryKernel<SignFormula, double>(registry);
  AddScalarUnaryKernel<SignFormula, int32_t>(registry);
  AddScalarUnaryKernel<SignFormula, int64_t>(registry);
}

}  // namespace skiff
