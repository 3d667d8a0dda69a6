// elementwise_min: Out = the smaller of X and Y, Y where they are equal. Source: Fluid's
// elementwise_min.
//
// X@GRAD = Out@GRAD where X < Y, Y@GRAD = Out@GRAD where X >= Y, else 0.
struct ElementwiseMinFormula {
  static constexpr BinaryFacts kFacts = {
      .type = "elementwise_min",
      .doc = "Out = the smaller of X and Y.",
      .grad_doc = "X@GRAD = Out@GRAD where X < Y, Y@GRAD = Out@GRAD where X >= Y, else 0.",
      .zero_preserving = true,
      .grad_zero_preserving = true,
      .x_gradient = {.reads_x = true, .reads_y = true},
      .y_gradient = {.reads_x = true, .reads_y = true}};

  template <class V>
  constexpr V Value(V x, V y) const {
    // Not Highway's Min: where x equals y or either is NaN, the result must be y on every
    // instruction set.
    return Where(x < y, x, y);
  }

  template <class V>
  constexpr V XGradient(V x, V y, V, V dout) const {
    return OnlyWhere(x < y, dout);
  }

  template <class V>
  constexpr V YGradient(V x, V y, V, V dout) const {
    return OnlyWhere(x >= y, dout);
  }
};
