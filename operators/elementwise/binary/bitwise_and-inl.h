// bitwise_and: Out = X & Y, bit by bit. Source: PaddlePaddle's bitwise_and.
struct BitwiseAndFormula {
  static constexpr BinaryFacts kFacts = {.type = "bitwise_and",
                                         .doc = "Out = X & Y, bit by bit; of bools, X and Y.",
                                         .no_gradient_reason = "bits have no gradient",
                                         .has_vectors = false,
                                         .is_bitwise = true};

  template <class V>
  constexpr V Value(V x, V y) const {
    return static_cast<V>(x & y);
  }
};
