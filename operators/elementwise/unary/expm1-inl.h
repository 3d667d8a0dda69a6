// expm1: Out = e^X - 1, exact for small X, too. Source: Fluid's expm1.
//
// X@GRAD = Out@GRAD * (Out + 1).
struct Expm1Formula {
  static constexpr UnaryFacts kFacts = {.type = "expm1",
                                        .doc = "Out = e^X - 1, exact for small X, too.",
                                        .grad_doc = "X@GRAD = Out@GRAD * (Out + 1).",
                                        .grad_reads = "Out",
                                        .zero_preserving = true,
                                        .grad_zero_preserving = true,
                                        .has_vectors = false,
                                        .needs_float32 = true};

  template <class V>
  constexpr V Value(V x) const {
    return Expm1(x);
  }

  template <class V>
  constexpr V Gradient(V out, V dout) const {
    return dout * (out + V{1});
  }
};
