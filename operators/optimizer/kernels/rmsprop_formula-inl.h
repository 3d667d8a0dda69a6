// rmsprop for one element; see rmsprop.cc. Included in the namespace of each instruction set and of
// CUDA.
template <bool kCentered>
struct RmspropFormula {
  // The op's third state, the mean of the gradients, is unused unless centered.
  static constexpr size_t kStates = kCentered ? 3 : 2;
  enum Number { kDecayNumber, kMomentumNumber, kEpsilonNumber };
  static constexpr auto kNumbers =
      std::to_array<NumberSource>({{"decay"}, {"momentum"}, {"epsilon"}});
  enum Coefficient { kRate, kDecay, kRest, kMomentum, kEpsilon };  // kRest: 1 - kDecay

  template <class Numbers>
  static constexpr void SetCoefficients(const Numbers& numbers, double* coefficients) {
    coefficients[kRate] = numbers.learning_rate;
    coefficients[kDecay] = numbers[kDecayNumber];
    coefficients[kRest] = 1.0 - numbers[kDecayNumber];
    coefficients[kMomentum] = numbers[kMomentumNumber];
    coefficients[kEpsilon] = numbers[kEpsilonNumber];
  }

  template <class Math, class V>
  static constexpr void Update(const Math& math, V grad, V& param, V* states) {
    V& mean_square = states[0];
    V& moment = states[1];
    mean_square =
        math.MulAdd(math[kDecay], mean_square, math.Mul(math.Mul(math[kRest], grad), grad));
    V variance = mean_square;
    if constexpr (kCentered) {
      V& mean_grad = states[2];
      mean_grad = math.MulAdd(math[kDecay], mean_grad, math.Mul(math[kRest], grad));
      variance = math.Max(math.NegMulAdd(mean_grad, mean_grad, mean_square), math.Number(0));
    }
    const V scale = math.Sqrt(math.Add(variance, math[kEpsilon]));
    const V step = math.Div(math.Mul(math[kRate], grad), scale);
    moment = math.MulAdd(math[kMomentum], moment, step);
    param = math.Sub(param, moment);
  }
};
