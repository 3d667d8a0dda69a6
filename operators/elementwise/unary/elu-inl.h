// elu: Out = X where X >= 0, else alpha * (exp(X) - 1). Source: Fluid's elu, after Clevert,
// Unterthiner, Hochreiter: Fast and Accurate Deep Network Learning by Exponential Linear Units
// (2015).
//
// X@GRAD = Out@GRAD where X > 0, else Out@GRAD * alpha * exp(X). It needs X only, so Out need not
// be kept; Fluid's gradient op takes both.
struct EluFormula {
  static constexpr UnaryFacts kFacts = {
      .type = "elu",
      .doc = "Out = X where X >= 0, else alpha * (exp(X) - 1).",
      .grad_doc = "X@GRAD = Out@GRAD where X > 0, else Out@GRAD * alpha * exp(X).",
      .grad_reads = "X",
      .grad_ignores = "Out",
      .zero_preserving = true,
      .grad_zero_preserving = true,
      .numbers = {
          {{.name = "alpha", .default_value = 1.0f, .doc = "The limit of -Out far below 0."}}}};

  explicit EluFormula(const UnaryNumbers& numbers) : alpha(numbers[0]) {}

  template <class V>
  constexpr V Value(V x) const {
    // Expm1 keeps the digits of small results.
    return WhereLazily(
        x < V{0}, [&] { return V(alpha) * Expm1(x); }, [&] { return x; });
  }

  template <class V>
  constexpr V Gradient(V x, V dout) const {
    // Adding 0 avoids -0 for gradients of 0, whatever the sign of alpha.
    return WhereLazily(
        x > V{0}, [&] { return dout; }, [&] { return MulAdd(dout, V(alpha) * Exp(x), V{0}); });
  }

  float alpha;
};
