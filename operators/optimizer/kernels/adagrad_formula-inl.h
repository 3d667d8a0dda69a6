// adagrad and decayed_adagrad for one element; see adagrad.cc. Included in the namespace of each
// instruction set and of CUDA.
struct AdagradFormula {
  static constexpr size_t kStates = 1;
  static constexpr SparseRule kSparseRule = SparseRule::kTouchedRows;
  enum Number { kEpsilonNumber, kOtherNumbers };
  static constexpr auto kNumbers = std::to_array<NumberSource>({{"epsilon"}});
  // kKept multiplies the moment, kAdded multiplies grad².
  enum Coefficient { kRate, kKept, kAdded, kEpsilon };

  template <class Numbers>
  static constexpr void SetCoefficients(const Numbers& numbers, double* coefficients) {
    coefficients[kRate] = numbers.learning_rate;
    coefficients[kKept] = 1.0;
    coefficients[kAdded] = 1.0;
    coefficients[kEpsilon] = numbers[kEpsilonNumber];
  }

  template <class Math, class V>
  static constexpr void Update(const Math& math, V grad, V& param, V* states) {
    V& moment = states[0];
    const V added = math.Mul(math.Mul(math[kAdded], grad), grad);
    moment = math.MulAdd(math[kKept], moment, added);
    const V ratio = math.Div(grad, math.Add(math.Sqrt(moment), math[kEpsilon]));
    param = math.NegMulAdd(math[kRate], ratio, param);
  }
};

// The moment is a mean instead of a sum.
struct DecayedAdagradFormula : AdagradFormula {
  static constexpr SparseRule kSparseRule = SparseRule::kAllRows;
  enum Number { kDecayNumber = AdagradFormula::kOtherNumbers };
  static constexpr auto kNumbers =
      std::to_array<NumberSource>({AdagradFormula::kNumbers[0], {"decay"}});

  template <class Numbers>
  static constexpr void SetCoefficients(const Numbers& numbers, double* coefficients) {
    AdagradFormula::SetCoefficients(numbers, coefficients);
    coefficients[kKept] = numbers[kDecayNumber];
    coefficients[kAdded] = 1.0 - numbers[kDecayNumber];
  }
};
