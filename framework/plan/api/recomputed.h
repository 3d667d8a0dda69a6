// What a plan computes again instead of keeping it.
#pragma once

#include <cstdint>

namespace skiff {

// What the pass recompute has a plan compute again in its backward pass.
struct Recomputed {
  int64_t instructions = 0;  // that run again
  int64_t saved_bytes = 0;   // of the most live bytes, as the pass knows them: without workspaces
  double cost_share = 0;     // of the cost of all other instructions, by estimate
};

}  // namespace skiff
