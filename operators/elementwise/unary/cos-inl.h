// cos: Out = cos X. Source: Fluid's cos.
//
// X@GRAD = -Out@GRAD * sin X.
struct CosFormula {
  static constexpr UnaryFacts kFacts = {.type = "cos",
                                        .doc = "Out = cos(X), X in radians.",
                                        .grad_doc = "X@GRAD = -Out@GRAD * sin(X).",
                                        .grad_reads = "X",
                                        .grad_zero_preserving = true,
                                        .has_vectors = false};

  template <class V>
  constexpr V Value(V x) const {
    return Cos(x);
  }

  template <class V>
  constexpr V Gradient(V x, V dout) const {
    // Not -Sin(x): from zeros, that would be -0, and the op must preserve zeros.
    return dout * (V{0} - Sin(x));
  }
};
