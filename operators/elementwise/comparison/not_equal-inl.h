// not_equal: Out = X != Y. Source: Fluid's not_equal.
struct NotEqualFormula {
  static constexpr ComparisonFacts kFacts = {.type = "not_equal", .doc = "Out = whether X != Y."};

  template <class V>
  constexpr bool Value(V x, V y) const {
    return x != y;
  }
};
