// adamw for one element; see adamw.cc. Included in the namespace of each instruction set and of
// CUDA, as is what it includes.
#include "operators/optimizer/adam_formula-inl.h"

struct AdamwFormula {
  static constexpr size_t kStates = AdamFormula::kStates;
  enum Coefficient { kKept = AdamFormula::kOthers };  // what the decay leaves of a parameter

  template <class Math, class V>
  static constexpr void Update(const Math& math, V grad, V& param, V* states) {
    param = math.Mul(math[kKept], param);
    AdamFormula::Update(math, grad, param, states);
  }
};
