// gelu: Out = X * P(X) with the normal distribution P(x) = (1 + erf(x / sqrt(2))) / 2, or
// approximately Out = X * (1 + tanh(sqrt(2 / pi) * (X + 0.044715 X^3))) / 2. Source: Fluid's gelu,
// after Hendrycks, Gimpel: Gaussian Error Linear Units (2016).
//
// X@GRAD = Out@GRAD * (P(X) + X * p(X)) with the density p, or the derivative of the approximation.
#include "operators/common/gelu_formula-inl.h"

struct GeluFormula {
  static constexpr UnaryFacts kFacts = {
      .type = "gelu",
      .doc = "Out = X * P(X), P being the normal distribution, or an approximation by tanh.",
      .grad_doc = "X@GRAD = Out@GRAD * (P(X) + X * p(X)), p being the density of P.",
      .grad_reads = "X",
      .zero_preserving = true,
      .grad_zero_preserving = true,
      .numbers = {
          {{.name = "approximate", .doc = "Whether to approximate P by tanh.", .is_bool = true}}}};

  explicit GeluFormula(const UnaryNumbers& numbers) : approximate(numbers[0] != 0) {}

  template <class V>
  constexpr V Value(V x) const {
    return Gelu(x, approximate);
  }

  template <class V>
  constexpr V Gradient(V x, V dout) const {
    return dout * GeluSlope(x, approximate);
  }

  bool approximate;
};
