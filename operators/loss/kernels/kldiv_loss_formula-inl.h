// The formulas of kldiv_loss (element_formula.h), which kldiv_loss.cc states. Included in the
// namespace of each instruction set and of each place.

// The losses of elements.
struct KldivLossFormula {
  static constexpr std::array kInputs = {"X", "Target"};
  static constexpr std::array kOutputs = {"Loss"};

  explicit KldivLossFormula(const OpContext&) {}

  template <class V>
  constexpr std::array<V, 1> operator()(V x, V target) const {
    return {OnlyWhere(target > V{0}, target * (Log(target) - x))};
  }
};

// The kernel divides Loss@GRAD as the op divides the losses.
struct KldivLossGradFormula {
  static constexpr std::array kInputs = {"Loss@GRAD", "Target"};
  static constexpr std::array kOutputs = {"X@GRAD"};

  explicit KldivLossGradFormula(const OpContext&) {}

  template <class V>
  constexpr std::array<V, 1> operator()(V dloss, V target) const {
    return {OnlyWhere(target > V{0}, dloss * -target)};
  }
};
