#include "operators/elementwise/kernels/comparison.h"

#include <utility>

namespace skiff {

void AddComparisonOp(OpRegistry& registry, const ComparisonFacts& facts) {
  constexpr DType kBool = DType::kBool;
  OpDef def = BinaryOpDef(facts.type, facts.doc, &kBool);
  if (facts.is_logical) {
    def.attrs.clear();  // aligned at the end
  } else {
    def.attrs.push_back({.name = "force_cpu",
                         .type = AttrType::kBool,
                         .default_value = false,
                         .doc = "Fluid keeps the result on the CPU; places are the plan's here."});
  }
  // Rounding one operand could change the answer, widening the other one can't.
  def.precision = Precision::kHigh;
  def.no_gradient_reason = "a bool has no gradient";
  registry.Add(std::move(def));
}

}  // namespace skiff
