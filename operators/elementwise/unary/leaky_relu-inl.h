// leaky_relu: Out = alpha * X where X < 0, else X; NaN stays NaN. Source: Fluid's leaky_relu,
// after Maas, Hannun, Ng: Rectifier Nonlinearities Improve Neural Network Acoustic Models (2013).
//
// X@GRAD = alpha * Out@GRAD where X < 0, else Out@GRAD.
struct LeakyReluFormula {
  static constexpr UnaryFacts kFacts = {
      .type = "leaky_relu",
      .doc = "Out = alpha * X where X < 0, else X; NaN stays NaN.",
      .grad_doc = "X@GRAD = alpha * Out@GRAD where X < 0, else Out@GRAD.",
      .grad_reads = "X",
      .zero_preserving = true,
      .grad_zero_preserving = true,
      .numbers = {
          {{.name = "alpha", .default_value = 0.02f, .doc = "The slope where X is negative."}}}};

  explicit LeakyReluFormula(const UnaryNumbers& numbers) : alpha(numbers[0]) {}

  template <class V>
  constexpr V Value(V x) const {
    return Where(x < V{0}, x * V(alpha), x);
  }

  template <class V>
  constexpr V Gradient(V x, V dout) const {
    return Where(x < V{0}, dout * V(alpha), dout);
  }

  float alpha;
};
