// bitwise_xor: Out = X ^ Y, bit by bit. Source: PaddlePaddle's bitwise_xor.
struct BitwiseXorFormula {
  static constexpr BinaryFacts kFacts = {
      .type = "bitwise_xor",
      .doc = "Out = X ^ Y, bit by bit; of bools, either X or Y, but not both.",
      .no_gradient_reason = "bits have no gradient",
      .has_vectors = false,
      .is_bitwise = true};

  template <class V>
  constexpr V Value(V x, V y) const {
    return static_cast<V>(x ^ y);
  }
};
