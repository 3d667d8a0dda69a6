// elementwise_mul: Out = X * Y. Source: Fluid's elementwise_mul. Integers wrap around.
//
// X@GRAD = Out@GRAD * Y, Y@GRAD = Out@GRAD * X. X may be selected rows if Y is one number.
struct ElementwiseMulFormula {
  static constexpr BinaryFacts kFacts = {
      .type = "elementwise_mul",
      .doc = "Out = X * Y. X may be selected rows if Y is one number.",
      .grad_doc = "X@GRAD = Out@GRAD * Y, Y@GRAD = Out@GRAD * X.",
      .zero_preserving = true,
      .grad_zero_preserving = true,
      .x_gradient = {.reads_y = true},
      .y_gradient = {.reads_x = true},
      .takes_selected_rows = true};

  template <class V>
  constexpr V Value(V x, V y) const {
    return WrappingMul(x, y);
  }

  template <class V>
  constexpr V XGradient(V, V y, V, V dout) const {
    return dout * y;
  }

  template <class V>
  constexpr V YGradient(V x, V, V, V dout) const {
    return dout * x;
  }
};
