// isinf_v2: Out = whether X is infinite. Source: PaddlePaddle's isinf_v2.
struct IsinfV2Formula {
  static constexpr PredicateFacts kFacts = {.type = "isinf_v2",
                                            .doc = "Out = whether each element of X is infinite."};

  template <class V>
  constexpr bool Value(V x) const {
    if constexpr (std::is_floating_point_v<V>) {
      return Abs(x) == std::numeric_limits<V>::infinity();
    } else {
      return false;
    }
  }
};
