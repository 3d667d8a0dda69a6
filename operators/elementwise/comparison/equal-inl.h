// equal: Out = X == Y. Source: Fluid's equal.
struct EqualFormula {
  static constexpr ComparisonFacts kFacts = {.type = "equal", .doc = "Out = whether X == Y."};

  template <class V>
  constexpr bool Value(V x, V y) const {
    return x == y;
  }
};
