// isfinite_v2: Out = whether X is neither infinite nor NaN. Source: PaddlePaddle's isfinite_v2.
struct IsfiniteV2Formula {
  static constexpr PredicateFacts kFacts = {
      .type = "isfinite_v2", .doc = "Out = whether each element of X is neither infinite nor NaN."};

  template <class V>
  constexpr bool Value(V x) const {
    if constexpr (std::is_floating_point_v<V>) {
      return x - x == V{0};  // of an infinity, as of NaN, the difference is NaN
    } else {
      return true;
    }
  }
};
