// logical_not: Out = not X. Source: Fluid's logical_not.
struct LogicalNotFormula {
  static constexpr PredicateFacts kFacts = {.type = "logical_not",
                                            .doc = "Out = not X; a number is true unless it is 0."};

  template <class V>
  constexpr bool Value(V x) const {
    return x == V{0};
  }
};
