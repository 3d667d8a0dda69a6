// Comparisons and logical ops of two operands, whose result is bool.
#pragma once

#include <cstdint>

#include "operators/elementwise/kernels/binary.h"
#include "operators/elementwise/kernels/comparison_facts.h"

namespace skiff {

void AddComparisonOp(OpRegistry& registry, const ComparisonFacts& facts);

// Registers the op of a comparison formula, for every dtype. A number counts as true unless it
// is 0.
template <class Formula>
void RegisterComparison(OpRegistry& registry) {
  AddComparisonOp(registry, Formula::kFacts);
  const auto add = [&]<typename T>() {
    AddBinaryKernel<T, bool>(registry, Formula::kFacts.type, ScalarBinaryLoop<Formula, T, bool>,
                             kScalarGrain);
  };
  add.template operator()<bool>();
  add.template operator()<uint8_t>();
  add.template operator()<int32_t>();
  add.template operator()<int64_t>();
  add.template operator()<float>();
  add.template operator()<double>();
}

}  // namespace skiff
