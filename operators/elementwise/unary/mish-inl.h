// mish: Out = X * tanh(s(X)) with s(x) = log(1 + exp(x)), or s(x) = x above the threshold. Source:
// Fluid's mish, after Misra: Mish (2019).
//
// With e = exp(x), tanh(s) = n / (n + 2), where n = e * (e + 2), or e^2 - 1 above the threshold. So
// no logarithm is needed. X@GRAD = Out@GRAD * (tanh(s) + X * (1 - tanh(s)^2) * s'(X)).
struct MishFormula {
  static constexpr UnaryFacts kFacts = {
      .type = "mish",
      .doc = "Out = X * tanh(log(1 + exp(X))), X * tanh(X) above the threshold.",
      .grad_doc = "X@GRAD = Out@GRAD times the derivative of X * tanh(log(1 + exp(X))).",
      .grad_reads = "X",
      .zero_preserving = true,
      .grad_zero_preserving = true,
      .numbers = {{{.name = "threshold",
                    .default_value = 20.0f,
                    .doc = "Above it, log(1 + exp(X)) is replaced by X."}}}};

  explicit MishFormula(const UnaryNumbers& numbers) : threshold(numbers[0]) {}

  // tanh(s(x)) and its derivative. Beyond kFlat, tanh rounds to 1; x is limited to it because n
  // would overflow for large x. The limited x is a number; its product with the derivative is too
  // small to change 1.
  template <class V>
  struct Curve {
    V tanh;
    V slope;
    V limited;
  };

  template <class V>
  constexpr Curve<V> CurveAt(V x) const {
    constexpr float kFlat = std::is_same_v<V, double> ? 40 : 20;
    const V limited = AtMost(V(kFlat), AboveMinusInfinity(x));
    const V e = QuickExp(limited);
    const auto is_line = x > V(threshold);
    const V n = Where(is_line, MulAdd(e, e, V{-1}), e * (e + V{2}));
    const V inverse = V{1} / (n + V{2});
    // 1 - tanh^2 = 4 (n + 1) / (n + 2)^2
    const V square = V{4} * inverse * ((n + V{1}) * inverse);
    const V bend = Where(is_line, V{1}, e / (V{1} + e));
    return {n * inverse, square * bend, limited};
  }

  template <class V>
  constexpr V Value(V x) const {
    return AboveMinusInfinity(x) * CurveAt(x).tanh;
  }

  template <class V>
  constexpr V Gradient(V x, V dout) const {
    const Curve<V> curve = CurveAt(x);
    return dout * MulAdd(curve.limited, curve.slope, curve.tanh);
  }

  float threshold;
};
