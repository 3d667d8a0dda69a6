// tanh: Out = (exp(X) - exp(-X)) / (exp(X) + exp(-X)). Source: Fluid's tanh.
//
// X@GRAD = Out@GRAD * (1 - Out²).
struct TanhFormula {
  static constexpr UnaryFacts kFacts = {.type = "tanh",
                                        .doc = "Out = tanh(X).",
                                        .grad_doc = "X@GRAD = Out@GRAD * (1 - Out^2).",
                                        .grad_reads = "Out",
                                        .zero_preserving = true,
                                        .grad_zero_preserving = true};

  template <class V>
  constexpr V Value(V x) const {
    return Tanh(x);
  }

  template <class V>
  constexpr V Gradient(V out, V dout) const {
    return dout * NegMulAdd(out, out, V{1});
  }
};
