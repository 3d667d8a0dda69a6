// elementwise_add: Out = X + Y. Source: Fluid's elementwise_add. Integers wrap around.
//
// X@GRAD = Y@GRAD = Out@GRAD.
struct ElementwiseAddFormula {
  static constexpr BinaryFacts kFacts = {.type = "elementwise_add",
                                         .doc = "Out = X + Y.",
                                         .grad_doc = "X@GRAD = Y@GRAD = Out@GRAD.",
                                         .zero_preserving = true,
                                         .grad_zero_preserving = true,
                                         .x_gradient = {.is_passed = true},
                                         .y_gradient = {.is_passed = true}};

  template <class V>
  constexpr V Value(V x, V y) const {
    return WrappingAdd(x, y);
  }
};
