// Policies by which buffers share the memory of an arena: Fluid's, which pass a dead buffer's
// memory on to a later buffer as a whole, and, for comparison with them, planning of offsets.
//
// Each policy allows all sharing that the policies before it allow. Its plan is no larger than
// theirs. Policies choose greedily, buffer by buffer, so a policy that allows more can do worse: a
// small buffer may take a large dead buffer's bytes, which a later buffer of exactly this size then
// lacks. Where this happens, the result is the smaller plan of an earlier policy.
#pragma once

#include <string_view>

namespace skiff {

enum class ReusePolicy {
  kNone,     // no sharing
  kEqual,    // a buffer takes the memory of a dead one of the same size
  kBestFit,  // a buffer takes the memory of the smallest dead one that is large enough
  kGrow,     // like kBestFit, but if none is large enough, the largest dead one grows
  kArena,    // offsets: PlanArena
};

// Returns "none", "equal", "best_fit", "grow" or "arena".
std::string_view ReusePolicyName(ReusePolicy policy);
// Returns the policy with this name. Throws Error (kInvalidArgument) that lists the known ones.
ReusePolicy ParseReusePolicy(std::string_view name);

}  // namespace skiff
