// square: Out = X². Source: Fluid's square. Integers wrap around.
//
// X@GRAD = 2 Out@GRAD * X.
struct SquareFormula {
  static constexpr UnaryFacts kFacts = {.type = "square",
                                        .doc = "Out = X^2.",
                                        .grad_doc = "X@GRAD = 2 * Out@GRAD * X.",
                                        .grad_reads = "X",
                                        .zero_preserving = true,
                                        .grad_zero_preserving = true,
                                        .takes_integers = true,
                                        .needs_float32 = true};

  template <class V>
  constexpr V Value(V x) const {
    return WrappingMul(x, x);
  }

  template <class V>
  constexpr V Gradient(V x, V dout) const {
    return V{2} * dout * x;
  }
};
