// bitwise_or: Out = X | Y, bit by bit. Source: PaddlePaddle's bitwise_or.
struct BitwiseOrFormula {
  static constexpr BinaryFacts kFacts = {.type = "bitwise_or",
                                         .doc = "Out = X | Y, bit by bit; of bools, X or Y.",
                                         .no_gradient_reason = "bits have no gradient",
                                         .has_vectors = false,
                                         .is_bitwise = true};

  template <class V>
  constexpr V Value(V x, V y) const {
    return static_cast<V>(x | y);
  }
};
