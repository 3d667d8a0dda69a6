// abs: Out = |X|. Source: Fluid's abs. The lowest integer, which has no opposite, wraps around to
// itself.
//
// X@GRAD = Out@GRAD where X > 0, -Out@GRAD where X < 0, 0 where X is 0; NaN stays NaN.
struct AbsFormula {
  static constexpr UnaryFacts kFacts = {.type = "abs",
                                        .doc = "Out = |X|.",
                                        .grad_doc = "X@GRAD = Out@GRAD * sign(X).",
                                        .grad_reads = "X",
                                        .zero_preserving = true,
                                        .grad_zero_preserving = true,
                                        .takes_integers = true};

  template <class V>
  constexpr V Value(V x) const {
    return Abs(x);
  }

  template <class V>
  constexpr V Gradient(V x, V dout) const {
    // An element that is neither above nor below 0 is 0 or NaN, and its gradient is the same.
    return Where(x < V{0}, V{0} - dout, Where(x > V{0}, dout, x));
  }
};
