// lars_momentum for one element; see lars_momentum.cc. Included in the namespace of each
// instruction set and of CUDA.
struct LarsMomentumFormula {
  static constexpr size_t kStates = 1;
  static constexpr bool kNeedsNorms = true;
  enum Number { kMuNumber, kCoeffNumber, kEpsilonNumber, kDecayNumber, kByNormsNumber };
  static constexpr auto kNumbers =
      std::to_array<NumberSource>({{"mu"},
                                   {"lars_coeff"},
                                   {"epsilon"},
                                   {"lars_weight_decay"},
                                   {.attr = "lars_policy", .choice = "norms"}});
  enum Coefficient { kLocalRate, kMu, kDecay };

  // The factor of the learning rate. It is 1 if a norm is 0, e.g. at the first step of a parameter
  // that starts as zeros: the ratio of the norms would be 0, and the parameter would never change.
  template <class Numbers>
  static constexpr double LocalFactor(const Numbers& numbers) {
    const bool has_norms = numbers.param_norm > 0 && numbers.step_norm > 0;
    const double decay = numbers[kDecayNumber];
    if (!has_norms || !(decay > 0 || numbers[kByNormsNumber] != 0)) return 1.0;
    return numbers[kCoeffNumber] * numbers.param_norm /
           (numbers.step_norm + decay * numbers.param_norm + numbers[kEpsilonNumber]);
  }

  template <class Numbers>
  static constexpr void SetCoefficients(const Numbers& numbers, double* coefficients) {
    coefficients[kLocalRate] = numbers.learning_rate * LocalFactor(numbers);
    coefficients[kMu] = numbers[kMuNumber];
    coefficients[kDecay] = numbers[kDecayNumber];
  }

  template <class Math, class V>
  static constexpr void Update(const Math& math, V grad, V& param, V* states) {
    V& velocity = states[0];
    const V decayed = math.MulAdd(math[kDecay], param, grad);
    velocity = math.MulAdd(math[kMu], velocity, math.Mul(math[kLocalRate], decayed));
    param = math.Sub(param, velocity);
  }
};
