// less_than: Out = X < Y. Source: Fluid's less_than.
struct LessThanFormula {
  static constexpr ComparisonFacts kFacts = {.type = "less_than", .doc = "Out = whether X < Y."};

  template <class V>
  constexpr bool Value(V x, V y) const {
    return x < y;
  }
};
