// greater_equal: Out = X >= Y. Source: Fluid's greater_equal.
struct GreaterEqualFormula {
  static constexpr ComparisonFacts kFacts = {.type = "greater_equal",
                                             .doc = "Out = whether X >= Y."};

  template <class V>
  constexpr bool Value(V x, V y) const {
    return x >= y;
  }
};
