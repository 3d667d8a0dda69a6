// logical_and: Out = X and Y. Source: Fluid's logical_and.
struct LogicalAndFormula {
  static constexpr ComparisonFacts kFacts = {
      .type = "logical_and",
      .doc = "Out = X and Y; a number is true unless it is 0.",
      .is_logical = true};

  template <class V>
  constexpr bool Value(V x, V y) const {
    return x != V{0} && y != V{0};
  }
};
