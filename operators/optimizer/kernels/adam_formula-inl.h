// adam for one element; see adam.cc. Included in the namespace of each instruction set and of CUDA.
struct AdamFormula {
  static constexpr size_t kStates = 2;
  static constexpr SparseRule kSparseRule = SparseRule::kLazyMode;
  // Optimizers built on adam have their own numbers and coefficients from kOtherNumbers and kOthers
  // on.
  enum Number { kBeta1Number, kBeta2Number, kEpsilonNumber, kOtherNumbers };
  static constexpr auto kNumbers = std::to_array<NumberSource>(
      {{"beta1", "Beta1Tensor"}, {"beta2", "Beta2Tensor"}, {"epsilon", "EpsilonTensor"}});
  enum Scalar { kBeta1Pow, kBeta2Pow };
  static constexpr auto kScalars = std::to_array<ScalarSource>(
      {{"Beta1Pow", "Beta1PowOut", kBeta1Number}, {"Beta2Pow", "Beta2PowOut", kBeta2Number}});
  // kRest is 1 - kBeta.
  enum Coefficient { kBeta1, kRest1, kBeta2, kRest2, kStepSize, kEpsilon, kOthers };

  template <class Numbers>
  static constexpr void SetAtRate(const Numbers& numbers, double rate, double* coefficients) {
    const double correction = std::sqrt(1.0 - numbers.scalars[kBeta2Pow]);
    coefficients[kBeta1] = numbers[kBeta1Number];
    coefficients[kRest1] = 1.0 - numbers[kBeta1Number];
    coefficients[kBeta2] = numbers[kBeta2Number];
    coefficients[kRest2] = 1.0 - numbers[kBeta2Number];
    coefficients[kStepSize] = rate * correction / (1.0 - numbers.scalars[kBeta1Pow]);
    coefficients[kEpsilon] = numbers[kEpsilonNumber] * correction;
  }

  template <class Numbers>
  static constexpr void SetCoefficients(const Numbers& numbers, double* coefficients) {
    SetAtRate(numbers, numbers.learning_rate, coefficients);
  }

  template <class Math, class V>
  static constexpr void MoveMoments(const Math& math, V grad, V* states) {
    states[0] = math.MulAdd(math[kBeta1], states[0], math.Mul(math[kRest1], grad));
    states[1] = math.MulAdd(math[kBeta2], states[1], math.Mul(math.Mul(math[kRest2], grad), grad));
  }

  template <class Math, class V>
  static constexpr V Direction(const Math& math, const V* states) {
    return math.Div(states[0], math.Add(math.Sqrt(states[1]), math[kEpsilon]));
  }

  template <class Math, class V>
  static constexpr void Update(const Math& math, V grad, V& param, V* states) {
    MoveMoments(math, grad, states);
    param = math.NegMulAdd(math[kStepSize], Direction(math, states), param);
  }
};
