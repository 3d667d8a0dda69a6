// elementwise_mod: Out = X - Y * floor(X / Y), which has the sign of Y. Source: Fluid's
// elementwise_mod. An integer modulo zero is an Error.
struct ElementwiseModFormula {
  static constexpr BinaryFacts kFacts = {.type = "elementwise_mod",
                                         .doc = "Out = X - Y * floor(X / Y), with the sign of Y.",
                                         .no_gradient_reason = "Fluid has none: remainders jump",
                                         .divides = true,
                                         .has_vectors = false,
                                         .needs_float32 = true};

  template <class V>
  constexpr V Value(V x, V y) const {
    if constexpr (std::is_integral_v<V>) {
      if (y == static_cast<V>(-1)) return V{0};  // the lowest number % -1 would trap
      const V rest = static_cast<V>(x % y);
      return rest != 0 && (rest < 0) != (y < 0) ? static_cast<V>(rest + y) : rest;
    } else {
      const V rest = std::fmod(x, y);
      // fmod has the sign of x.
      return rest != V{0} && (rest < V{0}) != (y < V{0}) ? rest + y : rest;
    }
  }
};
