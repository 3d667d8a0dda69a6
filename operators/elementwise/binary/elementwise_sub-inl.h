// elementwise_sub: Out = X - Y. Source: Fluid's elementwise_sub. Integers wrap around.
//
// X@GRAD = Out@GRAD, Y@GRAD = -Out@GRAD.
struct ElementwiseSubFormula {
  static constexpr BinaryFacts kFacts = {.type = "elementwise_sub",
                                         .doc = "Out = X - Y.",
                                         .grad_doc = "X@GRAD = Out@GRAD, Y@GRAD = -Out@GRAD.",
                                         .zero_preserving = true,
                                         .grad_zero_preserving = true,
                                         .x_gradient = {.is_passed = true}};

  template <class V>
  constexpr V Value(V x, V y) const {
    return WrappingSub(x, y);
  }

  template <class V>
  constexpr V YGradient(V, V, V, V dout) const {
    // Not -dout, which would turn 0 into -0.
    return V{0} - dout;
  }
};
