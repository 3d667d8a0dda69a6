// logical_xor: Out = either X or Y, but not both. Source: Fluid's logical_xor.
struct LogicalXorFormula {
  static constexpr ComparisonFacts kFacts = {
      .type = "logical_xor",
      .doc = "Out = either X or Y, but not both; a number is true unless it is 0.",
      .is_logical = true};

  template <class V>
  constexpr bool Value(V x, V y) const {
    return (x != V{0}) != (y != V{0});
  }
};
