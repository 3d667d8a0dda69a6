// log1p: Out = ln(1 + X), exact for small X, too; -inf at -1, NaN below. Source: Fluid's log1p.
//
// X@GRAD = Out@GRAD / (1 + X).
struct Log1pFormula {
  static constexpr UnaryFacts kFacts = {.type = "log1p",
                                        .doc = "Out = ln(1 + X), exact for small X, too.",
                                        .grad_doc = "X@GRAD = Out@GRAD / (1 + X).",
                                        .grad_reads = "X",
                                        .zero_preserving = true,
                                        .grad_zero_preserving = true,
                                        .has_vectors = false,
                                        .needs_float32 = true};

  template <class V>
  constexpr V Value(V x) const {
    return Log1p(x);
  }

  template <class V>
  constexpr V Gradient(V x, V dout) const {
    return dout / (V{1} + x);
  }
};
