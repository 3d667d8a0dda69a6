// lamb for one element; see lamb.cc. Included in the namespace of each instruction set and of CUDA,
// as is the file that it includes.
#include "operators/optimizer/kernels/adam_formula-inl.h"

// Uses adam's kStepSize for a learning rate of 1. The first pass moves the moments, and measures
// the norms on the way.
struct LambFormula {
  enum Number { kDecayNumber = AdamFormula::kOtherNumbers, kAlwaysNumber };
  enum Coefficient { kDecay = AdamFormula::kOthers, kRate };  // kRate: with the trust ratio

  template <class Numbers>
  static constexpr double TrustRatio(const Numbers& numbers) {
    const bool adapts = numbers[kDecayNumber] > 0 || numbers[kAlwaysNumber] != 0;
    if (!adapts || !(numbers.param_norm > 0) || !(numbers.step_norm > 0)) return 1.0;
    return numbers.param_norm / numbers.step_norm;
  }

  template <class Math, class V>
  static constexpr V StepOf(const Math& math, V param, const V* states) {
    const V direction = AdamFormula::Direction(math, states);
    return math.MulAdd(math[kDecay], param, math.Mul(math[AdamFormula::kStepSize], direction));
  }

  struct Step {
    static constexpr size_t kStates = AdamFormula::kStates;

    template <class Math, class V>
    static constexpr void Update(const Math& math, V grad, V& param, V* states) {
      AdamFormula::MoveMoments(math, grad, states);
      param = StepOf(math, param, states);
    }
  };

  struct Apply {
    static constexpr size_t kStates = AdamFormula::kStates;
    static constexpr bool kKeepsStates = true;
    static constexpr bool kNeedsNorms = true;
    static constexpr auto kNumbers = std::to_array<NumberSource>({AdamFormula::kNumbers[0],
                                                                  AdamFormula::kNumbers[1],
                                                                  AdamFormula::kNumbers[2],
                                                                  {"weight_decay"},
                                                                  {"always_adapt"}});
    static constexpr auto kScalars = AdamFormula::kScalars;

    template <class Numbers>
    static constexpr void SetCoefficients(const Numbers& numbers, double* coefficients) {
      AdamFormula::SetAtRate(numbers, 1.0, coefficients);
      coefficients[kDecay] = numbers[kDecayNumber];
      coefficients[kRate] = numbers.learning_rate * TrustRatio(numbers);
    }

    template <class Math, class V>
    static constexpr void Update(const Math& math, V, V& param, V* states) {
      param = math.NegMulAdd(math[kRate], StepOf(math, param, states), param);
    }
  };
};
