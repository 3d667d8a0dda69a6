// The formulas of sigmoid_cross_entropy_with_logits (element_formula.h), stated in the op's source.
// Included in the namespace of each instruction set and of each place.

// The index of the input without a name, the divisor.
inline constexpr size_t kSigmoidDivisor = 3;

struct SigmoidLossFormula {
  static constexpr std::array kInputs = {"X", "Label", "pos_weight", ""};
  static constexpr std::array kOutputs = {"Out"};

  explicit SigmoidLossFormula(const OpContext& context)
      : ignored(context.IntAttr("ignore_index")) {}

  template <class V>
  constexpr std::array<V, 1> operator()(V logit, V label, V weight, V divisor) const {
    // log1p is precise even where the exponential is too small to change 1.
    const V curve = Log1p(Exp(-Abs(logit)));
    const V positive = ZeroWhere(logit < V{0}, logit);
    const V loss = positive - logit * label + weight * curve;
    return {ZeroWhere(Trunc(label) == V(ignored), loss / divisor)};
  }

  int64_t ignored;
};

struct SigmoidLossGradFormula {
  static constexpr std::array kInputs = {"X", "Label", "pos_weight", "", "Out@GRAD"};
  static constexpr std::array kOutputs = {"X@GRAD"};

  explicit SigmoidLossGradFormula(const OpContext& context)
      : ignored(context.IntAttr("ignore_index")) {}

  template <class V>
  constexpr std::array<V, 1> operator()(V logit, V label, V weight, V divisor, V dout) const {
    const V tail = Exp(-Abs(logit));
    const V share = weight * (tail / (V{1} + tail));
    const V slope = Where(logit > V{0}, V{1} - share, share);
    return {ZeroWhere(Trunc(label) == V(ignored), dout * (slope - label) / divisor)};
  }

  int64_t ignored;
};

// Whether the divisor counts a label. Fluid's tolerance.
template <typename T>
constexpr bool IsCountedLabel(T label, T ignored) {
  return Abs(label - ignored) > static_cast<T>(1e-6);
}
