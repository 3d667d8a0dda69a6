// momentum for one element; see momentum.cc. Included in the namespace of each instruction set and
// of CUDA.
struct MomentumFormula {
  static constexpr size_t kStates = 1;
  enum Number { kMuNumber, kNesterovNumber };
  static constexpr auto kNumbers = std::to_array<NumberSource>({{"mu"}, {"use_nesterov"}});
  enum Coefficient { kRate, kMu, kNesterov };  // kNesterov: 1 or 0

  template <class Numbers>
  static constexpr void SetCoefficients(const Numbers& numbers, double* coefficients) {
    coefficients[kRate] = numbers.learning_rate;
    coefficients[kMu] = numbers[kMuNumber];
    coefficients[kNesterov] = numbers[kNesterovNumber];
  }

  template <class Math, class V>
  static constexpr void Update(const Math& math, V grad, V& param, V* states) {
    V& velocity = states[0];
    velocity = math.MulAdd(math[kMu], velocity, grad);
    const V ahead = math.MulAdd(math[kMu], velocity, grad);
    const V step = math.WhereGreater(math[kNesterov], math.Number(0.5), ahead, velocity);
    param = math.NegMulAdd(math[kRate], step, param);
  }
};
