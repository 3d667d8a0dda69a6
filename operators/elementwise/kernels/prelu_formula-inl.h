// prelu for an element and its Alpha; see prelu.cc. Included in the namespace of each instruction
// set and of CUDA.
struct PreluFormula {
  static constexpr BinaryFacts kFacts = {.type = "prelu",
                                         .x_gradient = {.reads_x = true, .reads_y = true},
                                         .y_gradient = {.reads_x = true}};

  template <class V>
  constexpr V Value(V x, V alpha) const {
    return Where(x > V{0}, x, alpha * x);
  }

  template <class V>
  constexpr V XGradient(V x, V alpha, V, V dout) const {
    return Where(x > V{0}, dout, alpha * dout);
  }

  template <class V>
  constexpr V YGradient(V x, V, V, V dout) const {
    return ZeroWhere(x > V{0}, x * dout);
  }
};
