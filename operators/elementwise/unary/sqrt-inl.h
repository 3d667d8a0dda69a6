// sqrt: Out = √X. Source: Fluid's sqrt.
//
// X@GRAD = Out@GRAD / (2 Out).
struct SqrtFormula {
  static constexpr UnaryFacts kFacts = {.type = "sqrt",
                                        .doc = "Out = the square root of X.",
                                        .grad_doc = "X@GRAD = Out@GRAD / (2 * Out).",
                                        .grad_reads = "Out",
                                        .zero_preserving = true};

  template <class V>
  constexpr V Value(V x) const {
    return Sqrt(x);
  }

  template <class V>
  constexpr V Gradient(V out, V dout) const {
    return V{0.5} * dout / out;
  }
};
