// ftrl for one element; see ftrl.cc. Included in the namespace of each instruction set and of CUDA.
//
// kIsRoot: lr_power is -0.5. With a rate of 0, nothing changes. That is the limit of small rates
// for the parameter, and the states must not change either: LinearAccumulator contains the
// parameter divided by the rate.
template <bool kIsRoot>
struct FtrlFormula {
  static constexpr size_t kStates = 2;
  static constexpr SparseRule kSparseRule = SparseRule::kTouchedRows;
  enum Number { kL1Number, kL2Number, kPowerNumber };
  static constexpr auto kNumbers = std::to_array<NumberSource>({{"l1"}, {"l2"}, {"lr_power"}});
  enum Coefficient { kRate, kL1, kTwiceL2, kPower };  // kPower: -lr_power

  template <class Numbers>
  static constexpr void SetCoefficients(const Numbers& numbers, double* coefficients) {
    constexpr double kLeast = 1e-10;
    coefficients[kRate] = numbers.learning_rate;
    coefficients[kL1] = numbers[kL1Number] + kLeast;
    coefficients[kTwiceL2] = 2.0 * (numbers[kL2Number] + kLeast);
    coefficients[kPower] = -numbers[kPowerNumber];
  }

  template <class Math, class V>
  static constexpr void Update(const Math& math, V grad, V& param, V* states) {
    const auto unless_still = [&math](V next, V now) {
      return math.WhereEqual(math[kRate], math.Number(0), now, next);
    };
    const auto power = [&math](V x) {
      if constexpr (kIsRoot) {
        return math.Sqrt(x);
      } else {
        return math.Pow(x, math[kPower]);
      }
    };
    const V squared = math.MulAdd(grad, grad, states[0]);
    const V new_power = power(squared);
    const V sigma = math.Div(math.Sub(new_power, power(states[0])), math[kRate]);
    const V linear = math.NegMulAdd(sigma, param, math.Add(states[1], grad));
    const V curvature = math.Add(math.Div(new_power, math[kRate]), math[kTwiceL2]);
    const V shrunk = math.Sub(math.CopySign(math[kL1], linear), linear);
    const V next =
        math.WhereGreater(math[kL1], math.Abs(linear), math.Number(0), math.Div(shrunk, curvature));
    param = unless_still(next, param);
    states[0] = unless_still(squared, states[0]);
    states[1] = unless_still(linear, states[1]);
  }
};
