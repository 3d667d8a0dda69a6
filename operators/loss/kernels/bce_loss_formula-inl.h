// The formulas of bce_loss (element_formula.h), which bce_loss.cc states. Included in the namespace
// of each instruction set and of each place.
struct BceLossFormula {
  static constexpr std::array kInputs = {"X", "Label"};
  static constexpr std::array kOutputs = {"Out"};

  explicit BceLossFormula(const OpContext&) {}

  template <class V>
  constexpr std::array<V, 1> operator()(V p, V label) const {
    const V rest = V{1} - p;
    // What the subtraction has lost: for a small p all of it. log(rest - lost) is close to
    // log(rest) - lost / rest.
    const V lost = (rest - V{1}) + p;
    const V log_rest = Log(rest) - OnlyWhere(rest > V{0}, lost / rest);
    return {V{0} - (label * Bounded(Log(p)) + (V{1} - label) * Bounded(log_rest))};
  }

 private:
  // In this form NaN stays NaN.
  template <class V>
  static constexpr V Bounded(V log) {
    return Where(log < V(-100.0f), V(-100.0f), log);
  }
};

struct BceLossGradFormula {
  static constexpr std::array kInputs = {"X", "Label", "Out@GRAD"};
  static constexpr std::array kOutputs = {"X@GRAD"};

  explicit BceLossGradFormula(const OpContext&) {}

  template <class V>
  constexpr std::array<V, 1> operator()(V p, V label, V dout) const {
    const V variance = p * (V{1} - p);
    const V least(1e-12f);
    return {dout * (p - label) / Where(variance < least, least, variance)};
  }
};
