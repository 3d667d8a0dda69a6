// less_equal: Out = X <= Y. Source: Fluid's less_equal.
struct LessEqualFormula {
  static constexpr ComparisonFacts kFacts = {.type = "less_equal", .doc = "Out = whether X <= Y."};

  template <class V>
  constexpr bool Value(V x, V y) const {
    return x <= y;
  }
};
