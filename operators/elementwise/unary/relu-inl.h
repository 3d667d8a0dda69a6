// relu: Out = max(X, 0), and NaN stays NaN. Source: Fluid's relu.
//
// X@GRAD = Out@GRAD where Out > 0, else 0. It reads Out, not X, so the op may run in place.
struct ReluFormula {
  static constexpr UnaryFacts kFacts = {.type = "relu",
                                        .doc = "Out = max(X, 0); NaN stays NaN.",
                                        .grad_doc = "X@GRAD = Out@GRAD where Out > 0, else 0.",
                                        .grad_reads = "Out",
                                        .zero_preserving = true,
                                        .grad_zero_preserving = true,
                                        .takes_integers = true};

  template <class V>
  constexpr V Value(V x) const {
    return ZeroWhere(x < V{0}, x);
  }

  template <class V>
  constexpr V Gradient(V out, V dout) const {
    return OnlyWhere(out > V{0}, dout);
  }
};
