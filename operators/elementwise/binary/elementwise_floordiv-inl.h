// elementwise_floordiv: Out = the largest integer that is not greater than X / Y. Source: Fluid's
// elementwise_floordiv. An integer division by zero is an Error.
struct ElementwiseFloordivFormula {
  static constexpr BinaryFacts kFacts = {
      .type = "elementwise_floordiv",
      .doc = "Out = the largest integer that is not greater than X / Y.",
      .no_gradient_reason = "Fluid has none: it is a step function",
      .divides = true,
      .has_vectors = false,
      .needs_float32 = true};

  template <class V>
  constexpr V Value(V x, V y) const {
    if constexpr (std::is_integral_v<V>) {
      const V quotient = WrappingDivide(x, y);
      if (y == static_cast<V>(-1)) return quotient;  // the lowest number % -1 would trap
      const V rest = static_cast<V>(x % y);
      return rest != 0 && (rest < 0) != (y < 0) ? quotient - 1 : quotient;
    } else {
      if (y == V{0}) return x / y;
      // Divides x less its remainder, not x: 1 / 0.1f rounds to 10, but the answer is 9.
      const V rest = std::fmod(x, y);
      const V quotient = std::round((x - rest) / y);
      return rest != V{0} && (rest < V{0}) != (y < V{0}) ? quotient - V{1} : quotient;
    }
  }
};
