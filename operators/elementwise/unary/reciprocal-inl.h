// reciprocal: Out = 1 / X. Source: Fluid's reciprocal.
//
// X@GRAD = -Out@GRAD * Out^2.
struct ReciprocalFormula {
  static constexpr UnaryFacts kFacts = {.type = "reciprocal",
                                        .doc = "Out = 1 / X.",
                                        .grad_doc = "X@GRAD = -Out@GRAD * Out^2.",
                                        .grad_reads = "Out",
                                        .needs_float32 = true};

  template <class V>
  constexpr V Value(V x) const {
    return V{1} / x;
  }

  template <class V>
  constexpr V Gradient(V out, V dout) const {
    return -(dout * (out * out));
  }
};
