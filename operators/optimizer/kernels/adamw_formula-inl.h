// adamw for one element; see adamw.cc. Included in the namespace of each instruction set and of
// CUDA, as is the file that it includes.
#include "operators/optimizer/kernels/adam_formula-inl.h"

struct AdamwFormula {
  static constexpr size_t kStates = AdamFormula::kStates;
  static constexpr SparseRule kSparseRule = AdamFormula::kSparseRule;
  enum Number { kRatioNumber = AdamFormula::kOtherNumbers, kDecayNumber, kDecaysNumber };
  static constexpr auto kNumbers = std::to_array<NumberSource>({AdamFormula::kNumbers[0],
                                                                AdamFormula::kNumbers[1],
                                                                AdamFormula::kNumbers[2],
                                                                {"lr_ratio"},
                                                                {"coeff"},
                                                                {"with_decay"}});
  static constexpr auto kScalars = AdamFormula::kScalars;
  enum Coefficient { kKept = AdamFormula::kOthers };  // the share of a parameter after the decay

  template <class Numbers>
  static constexpr void SetCoefficients(const Numbers& numbers, double* coefficients) {
    const double rate = numbers.learning_rate * numbers[kRatioNumber];
    const double decay = numbers[kDecaysNumber] != 0 ? numbers[kDecayNumber] : 0.0;
    AdamFormula::SetAtRate(numbers, rate, coefficients);
    coefficients[kKept] = 1.0 - rate * decay;
  }

  template <class Math, class V>
  static constexpr void Update(const Math& math, V grad, V& param, V* states) {
    param = math.Mul(math[kKept], param);
    AdamFormula::Update(math, grad, param, states);
  }
};
