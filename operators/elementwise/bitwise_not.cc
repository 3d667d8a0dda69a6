// bitwise_not: Out = X with each bit turned; of bools, not X. Source: PaddlePaddle's bitwise_not.
#include <type_traits>
#include <utility>

#include "operators/elementwise/kernels/unary.h"

namespace skiff {
namespace {

#include "operators/elementwise/kernels/bitwise_not_formula-inl.h"

}  // namespace

void RegisterBitwiseNot(OpRegistry& registry) {
  OpDef def = UnaryOpDef(BitwiseNotFormula::kFacts);
  def.no_gradient_reason = "bits have no gradient";
  registry.Add(std::move(def));
  AddScalarUnaryKernel<BitwiseNotFormula, bool>(registry);
  AddScalarUnaryKernel<BitwiseNotFormula, int32_t>(registry);
  AddScalarUnaryKernel<BitwiseNotFormula, int64_t>(registry);
}

}  // namespace skiff
