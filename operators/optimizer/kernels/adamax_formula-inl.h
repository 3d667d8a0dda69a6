// adamax for one element; see adamax.cc. Included in the namespace of each instruction set and of
// CUDA.
struct AdamaxFormula {
  static constexpr size_t kStates = 2;
  enum Number { kBeta1Number, kBeta2Number, kEpsilonNumber };
  static constexpr auto kNumbers = std::to_array<NumberSource>({{"beta1"}, {"beta2"}, {"epsilon"}});
  static constexpr auto kScalars =
      std::to_array<ScalarSource>({{"Beta1Pow", "Beta1PowOut", kBeta1Number}});
  enum Coefficient { kBeta1, kRest1, kBeta2, kStepSize, kEpsilon };  // kRest1: 1 - kBeta1

  template <class Numbers>
  static constexpr void SetCoefficients(const Numbers& numbers, double* coefficients) {
    coefficients[kBeta1] = numbers[kBeta1Number];
    coefficients[kRest1] = 1.0 - numbers[kBeta1Number];
    coefficients[kBeta2] = numbers[kBeta2Number];
    coefficients[kStepSize] = numbers.learning_rate / (1.0 - numbers.scalars[0]);
    coefficients[kEpsilon] = numbers[kEpsilonNumber];
  }

  template <class Math, class V>
  static constexpr void Update(const Math& math, V grad, V& param, V* states) {
    V& moment = states[0];
    V& norm = states[1];
    moment = math.MulAdd(math[kBeta1], moment, math.Mul(math[kRest1], grad));
    norm = math.Max(math.Abs(grad), math.MulAdd(math[kBeta2], norm, math[kEpsilon]));
    param = math.NegMulAdd(math[kStepSize], math.Div(moment, norm), param);
  }
};
