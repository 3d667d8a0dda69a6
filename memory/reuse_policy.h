// Plans an arena by one of the policies.
#pragma once

#include <vector>

#include "memory/api/reuse_policy.h"
#include "memory/arena_planner.h"

namespace skiff {

inline constexpr ReusePolicy kReusePolicies[] = {ReusePolicy::kNone, ReusePolicy::kEqual,
                                                 ReusePolicy::kBestFit, ReusePolicy::kGrow,
                                                 ReusePolicy::kArena};

// Returns a plan by this policy. Buffers with the same first_use are served in input order. A
// buffer isn't dead yet at its last_use. For all policies but kArena, a group is one buffer that
// lives from the first use of its first slice to the last use of its last; it comes after the
// buffers in no group in the input order. Throws what PlanArena throws, and Error
// (kResourceExhausted) if the arena would exceed 2^60 bytes.
ArenaPlan PlanWithPolicy(const std::vector<ArenaBuffer>& buffers, ReusePolicy policy);

}  // namespace skiff
