// sign for one element; see sign.cc. Included in the namespace of the CPU and of CUDA.
struct SignFormula {
  static constexpr UnaryFacts kFacts = {.type = "sign",
                                        .doc = "Out = 1 where X > 0, -1 where X < 0, else 0.",
                                        .zero_preserving = true};

  template <class V>
  constexpr V Value(V x) const {
    return x > V{0} ? V{1} : (x < V{0} ? V{-1} : x);
  }
};
