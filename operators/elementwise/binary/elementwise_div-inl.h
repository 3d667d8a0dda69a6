// elementwise_div: Out = X / Y. Source: Fluid's elementwise_div. Integer quotients are truncated
// towards zero, and an integer division by zero is an Error.
//
// X@GRAD = Out@GRAD / Y, Y@GRAD = -Out@GRAD * Out / Y.
struct ElementwiseDivFormula {
  static constexpr BinaryFacts kFacts = {
      .type = "elementwise_div",
      .doc = "Out = X / Y; integers are truncated towards zero.",
      .grad_doc = "X@GRAD = Out@GRAD / Y, Y@GRAD = -Out@GRAD * Out / Y.",
      .x_gradient = {.reads_y = true},
      .y_gradient = {.reads_y = true, .reads_out = true},
      .divides = true};

  template <class V>
  constexpr V Value(V x, V y) const {
    return WrappingDivide(x, y);
  }

  template <class V>
  constexpr V XGradient(V, V y, V, V dout) const {
    return dout / y;
  }

  template <class V>
  constexpr V YGradient(V, V y, V out, V dout) const {
    return -(dout * out / y);
  }
};
