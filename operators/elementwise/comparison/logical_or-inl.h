// logical_or: Out = X or Y. Source: Fluid's logical_or.
struct LogicalOrFormula {
  static constexpr ComparisonFacts kFacts = {
      .type = "logical_or",
      .doc = "Out = X or Y; a number is true unless it is 0.",
      .is_logical = true};

  template <class V>
  constexpr bool Value(V x, V y) const {
    return x != V{0} || y != V{0};
  }
};
