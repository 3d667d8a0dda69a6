// The formulas of huber_loss (element_formula.h), which huber_loss.cc states. Included in the
// namespace of each instruction set and of each place.
struct HuberLossFormula {
  static constexpr std::array kInputs = {"X", "Y"};
  static constexpr std::array kOutputs = {"Out", "Residual"};

  explicit HuberLossFormula(const OpContext& context) : delta(context.Attr<float>("delta")) {}

  template <class V>
  constexpr std::array<V, 2> operator()(V x, V y) const {
    const V bend(delta);
    const V r = y - x;
    const V size = Abs(r);
    return {Where(size <= bend, r * r * V(0.5f), bend * (size - bend * V(0.5f))), r};
  }

  float delta;
};

struct HuberLossGradFormula {
  static constexpr std::array kInputs = {"Residual", "Out@GRAD"};
  static constexpr std::array kOutputs = {"X@GRAD", "Y@GRAD"};

  explicit HuberLossGradFormula(const OpContext& context) : delta(context.Attr<float>("delta")) {}

  template <class V>
  constexpr std::array<V, 2> operator()(V r, V dout) const {
    const V bend(delta);
    // Comparisons instead of min and max, so that NaN stays NaN.
    const V below = Where(r > bend, bend, r);
    const V slope = dout * Where(below < -bend, -bend, below);
    // Not -slope, which would be -0 where the slope is 0.
    return {V{0} - slope, slope};
  }

  float delta;
};
