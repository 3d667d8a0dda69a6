// atan: Out = arctan X, in radians. Source: Fluid's atan.
//
// X@GRAD = Out@GRAD / (1 + X^2).
struct AtanFormula {
  static constexpr UnaryFacts kFacts = {.type = "atan",
                                        .doc = "Out = arctan(X), in radians.",
                                        .grad_doc = "X@GRAD = Out@GRAD / (1 + X^2).",
                                        .grad_reads = "X",
                                        .zero_preserving = true,
                                        .grad_zero_preserving = true,
                                        .has_vectors = false};

  template <class V>
  constexpr V Value(V x) const {
    return std::atan(x);
  }

  template <class V>
  constexpr V Gradient(V x, V dout) const {
    return dout / (V{1} + x * x);
  }
};
