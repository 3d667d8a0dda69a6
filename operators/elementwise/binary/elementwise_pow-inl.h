// elementwise_pow: Out = X^Y. Source: Fluid's elementwise_pow. Integers are raised in float64 and
// rounded; results out of range become the nearest integer.
//
// X@GRAD = Out@GRAD * Y * X^(Y - 1), Y@GRAD = Out@GRAD * ln(X) * X^Y. X@GRAD is 0 for Y = 0, and
// Y@GRAD is 0 for X = 0 with Y >= 0 and for X = inf with Y < 0, as in the limit (at X = Y = 0, as
// in PyTorch); Fluid gives NaN there.
struct ElementwisePowFormula {
  static constexpr BinaryFacts kFacts = {
      .type = "elementwise_pow",
      .doc = "Out = X^Y.",
      .grad_doc = "X@GRAD = Out@GRAD * Y * X^(Y - 1), Y@GRAD = Out@GRAD * ln(X) * X^Y.",
      .x_gradient = {.reads_x = true, .reads_y = true},
      .y_gradient = {.reads_x = true, .reads_y = true},
      .has_vectors = false,
      .needs_float32 = true};

  template <class V>
  constexpr V Value(V x, V y) const {
    if constexpr (std::is_integral_v<V>) {
      return FromFloat<V>(std::round(std::pow(static_cast<double>(x), static_cast<double>(y))));
    } else {
      return std::pow(x, y);
    }
  }

  template <class V>
  constexpr V XGradient(V x, V y, V, V dout) const {
    return y == V{0} ? V{0} : dout * y * std::pow(x, y - V{1});
  }

  template <class V>
  constexpr V YGradient(V x, V y, V, V dout) const {
    // Where the power is 0 or constant, an infinite logarithm doesn't matter.
    const bool is_flat = (x == V{0} && y >= V{0}) || (x - x != V{0} && x > V{0} && y < V{0});
    return is_flat ? V{0} : dout * std::log(x) * std::pow(x, y);
  }
};
