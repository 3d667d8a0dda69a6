// The formulas of margin_rank_loss (element_formula.h), which margin_rank_loss.cc states. Included
// in the namespace of each instruction set and of each place.
struct MarginRankLossFormula {
  static constexpr std::array kInputs = {"Label", "X1", "X2"};
  static constexpr std::array kOutputs = {"Out", "Activated"};

  explicit MarginRankLossFormula(const OpContext& context)
      : margin(context.Attr<float>("margin")) {}

  template <class V>
  constexpr std::array<V, 2> operator()(V sign, V x1, V x2) const {
    const V loss = V(margin) - sign * (x1 - x2);
    return {ZeroWhere(loss < V{0}, loss), OnlyWhere(loss > V{0}, V{1})};
  }

  float margin;
};

struct MarginRankLossGradFormula {
  static constexpr std::array kInputs = {"Activated", "Label", "Out@GRAD"};
  static constexpr std::array kOutputs = {"X1@GRAD", "X2@GRAD"};

  explicit MarginRankLossGradFormula(const OpContext&) {}

  template <class V>
  constexpr std::array<V, 2> operator()(V is_active, V sign, V dout) const {
    const V slope = dout * sign * is_active;
    return {-slope, slope};
  }
};
