// hard_swish: Out = X * min(max(X + offset, 0), threshold) / scale. Source: Fluid's hard_swish,
// after Howard et al.: Searching for MobileNetV3 (2019).
//
// X@GRAD = Out@GRAD * (2 X + offset) / scale where 0 < X + offset < threshold, 0 below, and
// Out@GRAD * threshold / scale above (Fluid assumes that the last slope is 1, as by default).
struct HardSwishFormula {
  static constexpr UnaryFacts kFacts = {
      .type = "hard_swish",
      .doc = "Out = X * min(max(X + offset, 0), threshold) / scale.",
      .grad_doc =
          "X@GRAD = Out@GRAD * (2 * X + offset) / scale where 0 < X + offset < threshold, "
          "0 below, Out@GRAD * threshold / scale above.",
      .grad_reads = "X",
      .zero_preserving = true,
      .grad_zero_preserving = true,
      .numbers = {{{.name = "threshold",
                    .default_value = 6.0f,
                    .doc = "The largest value of the factor before scaling.",
                    .range = NumberRange::kPositive},
                   {.name = "scale",
                    .default_value = 6.0f,
                    .doc = "The divisor of the product.",
                    .range = NumberRange::kPositive},
                   {.name = "offset", .default_value = 3.0f, .doc = "The number added to X."}}}};

  explicit HardSwishFormula(const UnaryNumbers& numbers)
      : threshold(numbers[0]), scale(numbers[1]), offset(numbers[2]) {}

  template <class V>
  constexpr V Value(V x) const {
    const V shifted = x + V(offset);
    const V above = ZeroWhere(shifted < V{0}, shifted);
    const V gate = Where(above > V(threshold), V(threshold), above);
    // In this order: X * threshold might overflow.
    return AboveMinusInfinity(x) * (gate / V(scale));
  }

  template <class V>
  constexpr V Gradient(V x, V dout) const {
    const V shifted = x + V(offset);
    const V slope = Where(shifted >= V(threshold), V(threshold), x + shifted);
    return ZeroWhere(shifted <= V{0}, dout * slope / V(scale));
  }

  float threshold;
  float scale;
  float offset;
};
