// Ops with a single operand and a bool for each element.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "operators/common/half.h"
#include "operators/elementwise/kernels/predicate_facts.h"
#include "operators/elementwise/kernels/unary.h"

namespace skiff {

void AddPredicateOp(OpRegistry& registry, const PredicateFacts& facts);

// Registers the op of a predicate's formula, for every dtype. Of half, the formula gets floats.
template <class Formula>
void RegisterPredicate(OpRegistry& registry) {
  AddPredicateOp(registry, Formula::kFacts);
  registry.AddCpuKernels<bool, uint8_t, int32_t, int64_t, float, double, BFloat16, Float16>(
      Formula::kFacts.type, []<typename T>(PrepareContext& context) {
        const In<T> x(context, "X");
        const Out<bool> out(context, "Out");
        return MakeRowsKernel([=](const KernelContext& run) {
          const T* from = x(run);
          bool* to = out(run);
          ParallelFor(x.count(run), kVectorGrain, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
              to[i] = Formula().Value(static_cast<WideType<T>>(from[i]));
            }
          });
        });
      });
}

}  // namespace skiff
