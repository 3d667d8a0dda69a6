// isnan_v2: Out = whether X is NaN. Source: PaddlePaddle's isnan_v2.
struct IsnanV2Formula {
  static constexpr PredicateFacts kFacts = {.type = "isnan_v2",
                                            .doc = "Out = whether each element of X is NaN."};

  template <class V>
  constexpr bool Value(V x) const {
    if constexpr (std::is_floating_point_v<V>) {
      return x != x;
    } else {
      return false;
    }
  }
};
