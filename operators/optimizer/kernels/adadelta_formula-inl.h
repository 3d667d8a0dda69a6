// adadelta for one element; see adadelta.cc. Included in the namespace of each instruction set and
// of CUDA.
struct AdadeltaFormula {
  static constexpr size_t kStates = 2;
  enum Number { kRhoNumber, kEpsilonNumber };
  static constexpr auto kNumbers = std::to_array<NumberSource>({{"rho"}, {"epsilon"}});
  enum Coefficient { kRate, kRho, kRest, kEpsilon };  // kRest: 1 - kRho

  template <class Numbers>
  static constexpr void SetCoefficients(const Numbers& numbers, double* coefficients) {
    coefficients[kRate] = numbers.learning_rate;
    coefficients[kRho] = numbers[kRhoNumber];
    coefficients[kRest] = 1.0 - numbers[kRhoNumber];
    coefficients[kEpsilon] = numbers[kEpsilonNumber];
  }

  template <class Math, class V>
  static constexpr void Update(const Math& math, V grad, V& param, V* states) {
    V& squared_grad = states[0];
    V& squared_update = states[1];
    const auto mean = [&math](V old, V added) {
      return math.MulAdd(math[kRho], old, math.Mul(math.Mul(math[kRest], added), added));
    };
    squared_grad = mean(squared_grad, grad);
    const V size = math.Sqrt(math.Add(squared_update, math[kEpsilon]));
    const V scale = math.Sqrt(math.Add(squared_grad, math[kEpsilon]));
    const V update = math.Mul(math.Div(size, scale), grad);
    squared_update = mean(squared_update, update);
    param = math.NegMulAdd(math[kRate], update, param);
  }
};
