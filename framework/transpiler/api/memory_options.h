// The options of the passes that save memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "memory/api/reuse_policy.h"

namespace skiff {

// What the backward pass recomputes instead of keeping it from the forward pass on.
enum class Recompute {
  kNothing,
  // What kCheapOps does, as far as it takes at most 2 % of a step by estimate. Nothing on a device,
  // and nothing with ReusePolicy::kNone.
  kAlmostFree,
  kCheapOps,     // what takes a pass over memory: activations, normalizations, element-wise ops
  kCheckpoints,  // everything between the checkpoints that the user names
  kBudget,       // the least work that makes the arena fit into a budget
  kLeastMemory,  // whatever makes the arena smallest
};

// Returns "nothing", "almost_free", "cheap_ops", "checkpoints", "budget" or "least_memory".
std::string_view RecomputeName(Recompute recompute);
// Returns the choice of that name. Throws an Error (kInvalidArgument) that lists the names if there
// is none.
Recompute ParseRecompute(std::string_view name);

struct MemoryOptions {
  ReusePolicy policy = ReusePolicy::kArena;
  // Variables whose values share storage with no others.
  std::vector<std::string> skip = {};
  Recompute recompute = Recompute::kAlmostFree;
  std::vector<std::string> checkpoints = {};  // variables of the forward pass; for kCheckpoints
  int64_t budget_bytes = 0;                   // of the arena; for kBudget
  // Tensors in flat buffers (flatten_parameters) begin at multiples of this, a power of two. 4
  // packs float32 tensors without gaps.
  int64_t flat_alignment_bytes = 64;
  // Fills arena memory with NaN as soon as nothing lives there, so that a read that comes too late
  // shows. For tests. Does nothing in a program on a device.
  bool poison_dead_memory = false;
  // Shares no memory, whatever the policy, and lets each value end at an inaccessible page, so that
  // a kernel that leaves its arguments faults at once. What kernels leave is compared with the
  // plan. For tests (docs/fuzzing.md). Does nothing in a program on a device.
  bool guards = false;
};

}  // namespace skiff
