// Lets values share storage: an op's output takes the place of an input that dies there, where
// OpDef says that the kernel works in place; a view lies on what it shows; and values with disjoint
// lives share arena space as the policy says (Plan::memory, memory/reuse_policy.h).
//
//   y = relu(x)       x not read again, not fetched, no feed and not in the scope -> y lies on x
//   y = reshape2(x)   x no feed and not in the scope                              -> y lies on x
//
// The gradients of an update that is_flat (flatten_parameters) get places one behind the other.
// Reuse is an allocation decision on the liveness of values: the program is not changed, and what
// is fetched lives to the end. `changes`: values computed in place, and views.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/transpiler/pass.h"

namespace skiff {

class MemoryReusePass final : public PlanPass {
 public:
  std::string_view name() const override { return "memory_reuse"; }
  PassReport Apply(const OpRegistry& registry, Plan* plan) const override;
};

// By instruction, the bytes that are live once this pass has run: by which those that run before
// judge what they do.
std::vector<int64_t> LiveBytesWithReuse(const OpRegistry& registry, Plan plan);
// The most of them; 0 for a plan of nothing.
int64_t MostLiveBytesWithReuse(const OpRegistry& registry, Plan plan);

}  // namespace skiff
