// sgd for one element; see sgd.cc. Included in the namespace of each instruction set and of CUDA.
struct SgdFormula {
  static constexpr size_t kStates = 0;
  static constexpr SparseRule kSparseRule = SparseRule::kTouchedRows;
  static constexpr std::array<NumberSource, 0> kNumbers{};
  enum Coefficient { kRate };

  template <class Numbers>
  static constexpr void SetCoefficients(const Numbers& numbers, double* coefficients) {
    coefficients[kRate] = numbers.learning_rate;
  }

  template <class Math, class V>
  static constexpr void Update(const Math& math, V grad, V& param, V*) {
    param = math.NegMulAdd(math[kRate], grad, param);
  }
};
