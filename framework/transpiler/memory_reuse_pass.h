// Lets values share storage. An op's output takes the place of an input that dies there if OpDef
// says that the kernel works in place. A view uses the storage of the value that it shows. Values
// with disjoint lives share arena space as the policy says (MemoryOptions, memory/reuse_policy.h).
//
//   y = relu(x)       x not read again, not fetched, no feed, not in the scope: y is stored over x
//   y = reshape2(x)   x no feed and not in the scope: y is stored over x
//
// The gradients of an update that is_flat (flatten_parameters) are stored one after the other.
// Reuse is an allocation decision on the liveness of values: the program doesn't change, and
// fetched values live to the end. `changes`: values computed in place, and views.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/transpiler/pass.h"

namespace skiff {

class MemoryReusePass final : public PlanPass {
 public:
  std::string_view name() const override { return "memory_reuse"; }
  PassReport Apply(const PassContext& context, Plan* plan) const override;
};

// Returns the bytes that are live at each instruction once this pass has run. Earlier passes judge
// changes by this function.
std::vector<int64_t> LiveBytesWithReuse(const PassContext& context, Plan plan);
// Returns the most of them; 0 for a plan without instructions.
int64_t MostLiveBytesWithReuse(const PassContext& context, Plan plan);

}  // namespace skiff
