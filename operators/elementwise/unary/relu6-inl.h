// relu6: Out = min(max(X, 0), 6); NaN stays NaN. Source: Fluid's relu6, after Krizhevsky:
// Convolutional Deep Belief Networks on CIFAR-10 (2010).
//
// X@GRAD = Out@GRAD where 0 < Out < 6, else 0.
struct Relu6Formula {
  static constexpr UnaryFacts kFacts = {.type = "relu6",
                                        .doc = "Out = min(max(X, 0), 6); NaN stays NaN.",
                                        .grad_doc = "X@GRAD = Out@GRAD where 0 < Out < 6, else 0.",
                                        .grad_reads = "Out",
                                        .zero_preserving = true,
                                        .grad_zero_preserving = true};

  template <class V>
  constexpr V Value(V x) const {
    const V above = ZeroWhere(x < V{0}, x);
    return Where(above > V{6}, V{6}, above);
  }

  template <class V>
  constexpr V Gradient(V out, V dout) const {
    return OnlyWhere(out > V{0} && out < V{6}, dout);
  }
};
