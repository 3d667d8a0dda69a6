// rsqrt: Out = 1 / sqrt(X). Source: Fluid's rsqrt.
//
// X@GRAD = -Out@GRAD * Out^3 / 2.
struct RsqrtFormula {
  static constexpr UnaryFacts kFacts = {.type = "rsqrt",
                                        .doc = "Out = 1 / the square root of X.",
                                        .grad_doc = "X@GRAD = -Out@GRAD * Out^3 / 2.",
                                        .grad_reads = "Out",
                                        .needs_float32 = true};

  template <class V>
  constexpr V Value(V x) const {
    return V{1} / Sqrt(x);
  }

  template <class V>
  constexpr V Gradient(V out, V dout) const {
    return V{-0.5} * dout * (out * out * out);
  }
};
