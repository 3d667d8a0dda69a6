// ceil: Out = the least integer that is not less than X. Source: Fluid's ceil.
//
// X@GRAD = 0, the slope wherever there is one.
struct CeilFormula {
  static constexpr UnaryFacts kFacts = {.type = "ceil",
                                        .doc = "Out = the least integer that is not less than X.",
                                        .grad_doc = "X@GRAD = 0.",
                                        .zero_preserving = true,
                                        .grad_zero_preserving = true};

  template <class V>
  constexpr V Value(V x) const {
    return Ceil(x);
  }

  template <class V>
  constexpr V Gradient(V, V) const {
    return V{0};
  }
};
