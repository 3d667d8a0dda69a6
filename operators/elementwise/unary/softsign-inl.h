// softsign: Out = X / (1 + |X|). Source: Fluid's softsign.
//
// X@GRAD = Out@GRAD / (1 + |X|)^2.
struct SoftsignFormula {
  static constexpr UnaryFacts kFacts = {.type = "softsign",
                                        .doc = "Out = X / (1 + |X|).",
                                        .grad_doc = "X@GRAD = Out@GRAD / (1 + |X|)^2.",
                                        .grad_reads = "X",
                                        .zero_preserving = true,
                                        .grad_zero_preserving = true};

  template <class V>
  constexpr V Value(V x) const {
    const V finite = NearestFinite(x);
    return finite / (V{1} + Abs(finite));
  }

  template <class V>
  constexpr V Gradient(V x, V dout) const {
    const V below = V{1} + Abs(x);
    return dout / (below * below);
  }
};
