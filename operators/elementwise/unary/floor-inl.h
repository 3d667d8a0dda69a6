// floor: Out = the largest integer that is not greater than X. Source: Fluid's floor.
//
// X@GRAD = 0, the slope wherever there is one.
struct FloorFormula {
  static constexpr UnaryFacts kFacts = {
      .type = "floor",
      .doc = "Out = the largest integer that is not greater than X.",
      .grad_doc = "X@GRAD = 0.",
      .zero_preserving = true,
      .grad_zero_preserving = true};

  template <class V>
  constexpr V Value(V x) const {
    return Floor(x);
  }

  template <class V>
  constexpr V Gradient(V, V) const {
    return V{0};
  }
};
