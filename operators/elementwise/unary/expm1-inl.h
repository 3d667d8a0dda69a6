// expm1: Out = e^X - 1, exact for small X, too. Source: Fluid's expm1.
//
// X@GRAD = Out@GRAD * (Out + 1).
//
// Against float64, float32 vectors err by at most 3.5 units in the last place, and overflow where
// the rounded result is infinite. The gradient's absolute error is the rounding of Out where Out is
// near -1.
struct Expm1Formula {
  static constexpr UnaryFacts kFacts = {.type = "expm1",
                                        .doc = "Out = e^X - 1, exact for small X, too.",
                                        .grad_doc = "X@GRAD = Out@GRAD * (Out + 1).",
                                        .grad_reads = "Out",
                                        .zero_preserving = true,
                                        .grad_zero_preserving = true,
                                        .needs_float32 = true};

  template <class V>
  constexpr V Value(V x) const {
    // Of NaN and 0, vectors would make another NaN and lose the sign.
    return Where(Abs(x) > V{0}, Expm1(BelowExpReach(AboveMinusExpReach(x))), x);
  }

  template <class V>
  constexpr V Gradient(V out, V dout) const {
    return dout * (out + V{1});
  }
};
