// sign: Out = 1 where X > 0, -1 where X < 0, else X (0, and NaN stays NaN). Source: Fluid's sign.
//
// The gradient is Fluid's: the op scale with a factor of 0 on Out@GRAD.
#include <utility>

#include "framework/op/grad.h"
#include "operators/elementwise/kernels/unary.h"

namespace skiff {
namespace {

struct Sign {
  template <typename T>
  T operator()(T x) const {
    if (x > T{0}) return T{1};
    return x < T{0} ? T{-1} : x;
  }
};

std::vector<Op> SignGradient(const GradContext& context) {
  Op grad("scale");
  grad.attrs = context.forward().attrs;
  grad.SetInput("X", context.OutputGrad("Out")).SetOutput("Out", context.InputGrad("X"));
  grad.SetAttr("scale", 0.0f).SetAttr("bias", 0.0f).SetAttr("bias_after_scale", true);
  return {std::move(grad)};
}

}  // namespace

void RegisterSign(OpRegistry& registry) {
  const UnaryFacts facts{.type = "sign",
                         .doc = "Out = 1 where X > 0, -1 where X < 0, else 0.",
                         .grad_doc = "",
                         .grad_reads = "",
                         .zero_preserving = true};
  OpDef def = UnaryOpDef(facts);
  def.grad = SignGradient;
  registry.Add(std::move(def));
  AddScalarUnaryKernels<Sign, float, double, int32_t, int64_t>(registry, facts);
}

}  // namespace skiff
