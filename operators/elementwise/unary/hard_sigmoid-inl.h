// hard_sigmoid: Out = min(max(slope * X + offset, 0), 1); NaN stays NaN. Source: Fluid's
// hard_sigmoid, after Courbariaux, Bengio, David: BinaryConnect (2015).
//
// X@GRAD = slope * Out@GRAD where 0 < Out < 1, else 0.
struct HardSigmoidFormula {
  static constexpr UnaryFacts kFacts = {
      .type = "hard_sigmoid",
      .doc = "Out = min(max(slope * X + offset, 0), 1); NaN stays NaN.",
      .grad_doc = "X@GRAD = slope * Out@GRAD where 0 < Out < 1, else 0.",
      .grad_reads = "Out",
      .grad_zero_preserving = true,
      .numbers = {{{.name = "slope", .default_value = 0.2f, .doc = "The slope between 0 and 1."},
                   {.name = "offset", .default_value = 0.5f, .doc = "Out where X is 0."}}}};

  explicit HardSigmoidFormula(const UnaryNumbers& numbers)
      : slope(numbers[0]), offset(numbers[1]) {}

  template <class V>
  constexpr V Value(V x) const {
    const V line = x * V(slope) + V(offset);
    const V above = ZeroWhere(line < V{0}, line);
    return Where(above > V{1}, V{1}, above);
  }

  template <class V>
  constexpr V Gradient(V out, V dout) const {
    return OnlyWhere(out > V{0} && out < V{1}, dout * V(slope));
  }

  float slope;
  float offset;
};
