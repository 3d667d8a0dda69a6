// Runs updates of parameters, and what keeps averages of what they write, as one loop: block by
// block instead of list by list, so that a new parameter is averaged while it is in the cache.
//
//   before                                          after
//     w#5, m#6 = momentum(w#0, g#1, m#2)              w#5, m#6, e#7 = fused(momentum,
//     ...                                                 exponential_moving_average)(w#0, g#1,
//     e#7 = exponential_moving_average(w#5, e#3)          m#2, e#3)
//
// An op joins the one whose results it reads if it reads them as elements of its lists, argument by
// argument where that one writes them, and if it may stand that much earlier. So does an update
// whose gradients gradient_merge has just added up. Averages of parameters that several ops update
// are cut into one op for each of these. Each parameter gets what it would alone: no bit of a
// result changes.
//
// Left alone: ops with a sparse gradient, whose kernel is forced or no ListKernel, that write into
// the arena, and those that need all elements before the first (norms). `changes`: fused
// instructions made.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class FuseUpdatesPass final : public PlanPass {
 public:
  std::string_view name() const override { return "fuse_updates"; }
  PassReport Apply(const OpRegistry& registry, Plan* plan) const override;
};

}  // namespace skiff
