// selu: Out = scale * X where X > 0, else scale * alpha * (exp(X) - 1). Source: Fluid's selu, after
// Klambauer et al.: Self-Normalizing Neural Networks (2017), whose constants are the defaults.
//
// X@GRAD = Out@GRAD * scale where Out > 0, else Out@GRAD * (Out + scale * alpha). Out must have the
// sign of X, so scale must be above 0, and alpha at least 0.
struct SeluFormula {
  static constexpr UnaryFacts kFacts = {
      .type = "selu",
      .doc = "Out = scale * X where X > 0, else scale * alpha * (exp(X) - 1).",
      .grad_doc = "X@GRAD = Out@GRAD * scale where Out > 0, else Out@GRAD * (Out + scale * alpha).",
      .grad_reads = "Out",
      .zero_preserving = true,
      .grad_zero_preserving = true,
      .numbers = {{{.name = "scale",
                    .default_value = 1.0507009873554805f,
                    .doc = "The slope where X is positive.",
                    .range = NumberRange::kPositive},
                   {.name = "alpha",
                    .default_value = 1.6732632423543772f,
                    .doc = "The limit of -Out / scale far below 0.",
                    .range = NumberRange::kNotNegative}}}};

  explicit SeluFormula(const UnaryNumbers& numbers) : scale(numbers[0]), alpha(numbers[1]) {}

  template <class V>
  constexpr V Value(V x) const {
    // Expm1 keeps the digits of small results.
    return WhereLazily(
        x < V{0}, [&] { return V(scale) * V(alpha) * Expm1(x); }, [&] { return V(scale) * x; });
  }

  template <class V>
  constexpr V Gradient(V out, V dout) const {
    return dout * Where(out > V{0}, V(scale), out + V(scale) * V(alpha));
  }

  float scale;
  float alpha;
};
