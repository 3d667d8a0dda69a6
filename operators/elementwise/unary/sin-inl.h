// sin: Out = sin X. Source: Fluid's sin.
//
// X@GRAD = Out@GRAD * cos X.
struct SinFormula {
  static constexpr UnaryFacts kFacts = {.type = "sin",
                                        .doc = "Out = sin(X), X in radians.",
                                        .grad_doc = "X@GRAD = Out@GRAD * cos(X).",
                                        .grad_reads = "X",
                                        .zero_preserving = true,
                                        .grad_zero_preserving = true,
                                        .has_vectors = false};

  template <class V>
  constexpr V Value(V x) const {
    return Sin(x);
  }

  template <class V>
  constexpr V Gradient(V x, V dout) const {
    return dout * Cos(x);
  }
};
