// The formulas of log_loss (element_formula.h), which log_loss.cc states. Included in the
// namespace of each instruction set and of each place.
struct LogLossFormula {
  static constexpr std::array kInputs = {"Predicted", "Labels"};
  static constexpr std::array kOutputs = {"Loss"};

  explicit LogLossFormula(const OpContext& context) : epsilon(context.Attr<float>("epsilon")) {}

  template <class V>
  constexpr std::array<V, 1> operator()(V p, V label) const {
    const V small(epsilon);
    return {-label * Log(p + small) - (V{1} - label) * Log(V{1} - p + small)};
  }

  float epsilon;
};

struct LogLossGradFormula {
  static constexpr std::array kInputs = {"Predicted", "Labels", "Loss@GRAD"};
  static constexpr std::array kOutputs = {"Predicted@GRAD"};

  explicit LogLossGradFormula(const OpContext& context) : epsilon(context.Attr<float>("epsilon")) {}

  template <class V>
  constexpr std::array<V, 1> operator()(V p, V label, V dloss) const {
    const V small(epsilon);
    // The term of the label 0, whose loss rises with the probability.
    const V rising = (V{1} - label) / (V{1} - p + small);
    return {dloss * (rising - label / (p + small))};
  }

  float epsilon;
};
