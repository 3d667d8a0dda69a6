// How buffers share the memory of an arena. The ancestor's policies, which give a dead buffer to a
// later one whole, and the planning of offsets, which they are compared with.
#pragma once

#include <string_view>
#include <vector>

#include "memory/arena_planner.h"

namespace skiff {

enum class ReusePolicy {
  kNone,     // a place of its own for each
  kEqual,    // a dead buffer serves a later one of as many bytes
  kBestFit,  // the smallest dead one that is large enough does
  kGrow,     // or, if none is, the largest one, which grows
  kArena,    // offsets: PlanArena
};

inline constexpr ReusePolicy kReusePolicies[] = {ReusePolicy::kNone, ReusePolicy::kEqual,
                                                 ReusePolicy::kBestFit, ReusePolicy::kGrow,
                                                 ReusePolicy::kArena};

// "none", "equal", "best_fit", "grow", "arena".
std::string_view ReusePolicyName(ReusePolicy policy);
// Error (kInvalidArgument) naming those that there are.
ReusePolicy ParseReusePolicy(std::string_view name);

// Offsets of buffers that share memory as the policy says, in an arena. Buffers that begin at one
// instant are served in the order given; at its last instant a buffer isn't dead yet. Of all
// policies but kArena, a group is one buffer that lives from the first use of its first slice to
// the last use of its last, served behind those in no group. Errors of PlanArena, for all policies;
// kResourceExhausted where they add up to more than 2^60 bytes.
ArenaPlan PlanWithPolicy(const std::vector<ArenaBuffer>& buffers, ReusePolicy policy);

}  // namespace skiff
