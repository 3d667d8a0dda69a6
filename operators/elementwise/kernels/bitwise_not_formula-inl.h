// bitwise_not for one element; see bitwise_not.cc. Included in the namespace of the CPU and of
// CUDA.
struct BitwiseNotFormula {
  static constexpr UnaryFacts kFacts = {.type = "bitwise_not",
                                        .doc = "Out = X with each bit turned; of bools, not X."};

  template <class V>
  constexpr V Value(V x) const {
    if constexpr (std::is_same_v<V, bool>) {
      return !x;  // ~ would promote it to a number that isn't 0
    } else {
      return ~x;
    }
  }
};
