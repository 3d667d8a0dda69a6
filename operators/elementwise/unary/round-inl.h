// round: Out = the integer nearest to X, halves away from zero. Source: Fluid's round.
//
// X@GRAD = 0, the slope wherever there is one.
struct RoundFormula {
  static constexpr UnaryFacts kFacts = {
      .type = "round",
      .doc = "Out = the integer nearest to X, halves away from zero.",
      .grad_doc = "X@GRAD = 0.",
      .zero_preserving = true,
      .grad_zero_preserving = true};

  template <class V>
  constexpr V Value(V x) const {
    return Round(x);
  }

  template <class V>
  constexpr V Gradient(V, V) const {
    return V{0};
  }
};
