// log1p: Out = ln(1 + X), exact for small X, too; -inf at -1, NaN below. Source: Fluid's log1p.
//
// X@GRAD = Out@GRAD / (1 + X).
//
// Against float64, float32 vectors err by at most 2.5 units in the last place. The gradient's
// relative error is at most 1e-7.
struct Log1pFormula {
  static constexpr UnaryFacts kFacts = {.type = "log1p",
                                        .doc = "Out = ln(1 + X), exact for small X, too.",
                                        .grad_doc = "X@GRAD = Out@GRAD / (1 + X).",
                                        .grad_reads = "X",
                                        .zero_preserving = true,
                                        .grad_zero_preserving = true,
                                        .needs_float32 = true};

  template <class V>
  constexpr V Value(V x) const {
    using Limits = std::numeric_limits<float>;
    const V infinity(Limits::infinity());
    // -inf at -1, and NaN of NaN.
    const V outside = Where(x < V{-1}, V(Limits::quiet_NaN()), x * infinity);
    return Where(x > V{-1}, Where(x < infinity, Log1p(x), x), outside);
  }

  template <class V>
  constexpr V Gradient(V x, V dout) const {
    return dout / (V{1} + x);
  }
};
