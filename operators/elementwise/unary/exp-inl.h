// exp: Out = e^X. Source: Fluid's exp.
//
// X@GRAD = Out@GRAD * Out.
struct ExpFormula {
  static constexpr UnaryFacts kFacts = {.type = "exp",
                                        .doc = "Out = e^X.",
                                        .grad_doc = "X@GRAD = Out@GRAD * Out.",
                                        .grad_reads = "Out",
                                        .grad_zero_preserving = true,
                                        .needs_float32 = true};

  template <class V>
  constexpr V Value(V x) const {
    return Exp(x);
  }

  template <class V>
  constexpr V Gradient(V out, V dout) const {
    return dout * out;
  }
};
