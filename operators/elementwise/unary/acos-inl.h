// acos: Out = arccos X, in radians; NaN outside [-1, 1]. Source: Fluid's acos.
//
// X@GRAD = -Out@GRAD / sqrt(1 - X^2), infinite at -1 and 1.
struct AcosFormula {
  static constexpr UnaryFacts kFacts = {.type = "acos",
                                        .doc = "Out = arccos(X), in radians; NaN outside [-1, 1].",
                                        .grad_doc = "X@GRAD = -Out@GRAD / sqrt(1 - X^2).",
                                        .grad_reads = "X",
                                        .has_vectors = false,
                                        .needs_float32 = true};

  template <class V>
  constexpr V Value(V x) const {
    return std::acos(x);
  }

  template <class V>
  constexpr V Gradient(V x, V dout) const {
    // The product keeps the digits that 1 - x * x loses near 1.
    return -dout / Sqrt((V{1} - x) * (V{1} + x));
  }
};
