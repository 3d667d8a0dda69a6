// gelu: Out = X * P(X) with the normal distribution P(x) = (1 + erf(x / sqrt(2))) / 2, or
// approximately Out = X * (1 + tanh(sqrt(2 / pi) * (X + 0.044715 X^3))) / 2. Source: Fluid's gelu,
// after Hendrycks, Gimpel: Gaussian Error Linear Units (2016).
//
// X@GRAD = Out@GRAD * (P(X) + X * p(X)) with the density p, or the derivative of the approximation.
#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/gelu.cc"
#include "hwy/foreach_target.h"
#include "operators/common/gelu-inl.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Gelu : GeluFunction {
  explicit Gelu(const OpContext& context) : GeluFunction{context.Attr<bool>("approximate")} {}
};

struct GeluGrad : GeluGradFunction {
  explicit GeluGrad(const OpContext& context)
      : GeluGradFunction{context.Attr<bool>("approximate")} {}
};

UnaryFloatLoops GeluLoops(const OpContext& context) { return UnaryLoops<Gelu, GeluGrad>(context); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(GeluLoops);

void RegisterGelu(OpRegistry& registry) {
  RegisterUnary<HWY_NAMESPACE::Gelu, HWY_NAMESPACE::GeluGrad>(
      registry,
      {.type = "gelu",
       .doc = "Out = X * P(X), P being the normal distribution, or an approximation by tanh.",
       .grad_doc = "X@GRAD = Out@GRAD * (P(X) + X * p(X)), p being the density of P.",
       .grad_reads = "X",
       .zero_preserving = true,
       .grad_zero_preserving = true,
       .attrs = {{.name = "approximate",
                  .type = AttrType::kBool,
                  .default_value = false,
                  .doc = "Whether to approximate P by tanh."}}},
      [](const OpContext& context) { return HWY_DYNAMIC_DISPATCH(GeluLoops)(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
