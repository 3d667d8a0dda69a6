// greater_than: Out = X > Y. Source: Fluid's greater_than.
struct GreaterThanFormula {
  static constexpr ComparisonFacts kFacts = {.type = "greater_than", .doc = "Out = whether X > Y."};

  template <class V>
  constexpr bool Value(V x, V y) const {
    return x > y;
  }
};
