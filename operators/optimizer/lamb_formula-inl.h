// lamb for one element; see lamb.cc. Included in the namespace of each instruction set and of CUDA,
// as is what it includes.
#include "operators/optimizer/adam_formula-inl.h"

// With adam's kStepSize for a learning rate of 1.
struct LambFormula {
  enum Coefficient { kDecay = AdamFormula::kOthers, kRate };  // kRate: with the trust ratio

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

    template <class Math, class V>
    static constexpr void Update(const Math& math, V, V& param, V* states) {
      param = math.NegMulAdd(math[kRate], StepOf(math, param, states), param);
    }
  };
};
