// softplus: Out = log(1 + exp(beta * X)) / beta, or X where beta * X > threshold. Source: Fluid's
// softplus.
//
// X@GRAD = Out@GRAD / (1 + exp(-beta * X)), or Out@GRAD where beta * X > threshold.
struct SoftplusFormula {
  static constexpr UnaryFacts kFacts = {
      .type = "softplus",
      .doc = "Out = log(1 + exp(beta * X)) / beta, or X where beta * X > threshold.",
      .grad_doc =
          "X@GRAD = Out@GRAD / (1 + exp(-beta * X)), or Out@GRAD where beta * X > threshold.",
      .grad_reads = "X",
      .grad_zero_preserving = true,
      .needs_float32 = true,
      .numbers = {{{.name = "beta",
                    .default_value = 1.0f,
                    .doc = "How sharply the curve bends at 0; not 0.",
                    .range = NumberRange::kNotZero},
                   {.name = "threshold",
                    .default_value = 20.0f,
                    .doc = "The value of beta * X above which Out is X."}}}};

  explicit SoftplusFormula(const UnaryNumbers& numbers) : beta(numbers[0]), threshold(numbers[1]) {}

  template <class V>
  constexpr V Value(V x) const {
    const V scaled = x * V(beta);
    // log(1 + exp(s)) = max(s, 0) + log(1 + exp(-|s|)). In this form nothing overflows, and small
    // results keep their digits.
    const V positive = ZeroWhere(scaled < V{0}, scaled);
    const V out = (positive + Log1p(Exp(-Abs(scaled)))) / V(beta);
    return Where(scaled > V(threshold), x, out);
  }

  template <class V>
  constexpr V Gradient(V x, V dout) const {
    const V scaled = x * V(beta);
    return Where(scaled > V(threshold), dout, dout / (V{1} + Exp(-scaled)));
  }

  float beta;
  float threshold;
};
