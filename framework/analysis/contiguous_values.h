// Tells which values of a plan are stored contiguously, and at which offsets.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/plan/plan.h"

namespace skiff {

// A storage of a list, at a fixed distance from the list's other storages.
struct ContiguousSlice {
  ValueId value;       // of the list
  ValueId root;        // the root of its storage
  int64_t offset = 0;  // from the first storage of the list
};

// Returns, for each list of Plan::contiguous, the slices that take part, in the list's order.
// Throws Error (kInvalidArgument) for a value that the plan doesn't have, and for an alignment that
// isn't a power of two or is less than an element of a slice.
std::vector<std::vector<ContiguousSlice>> ContiguousSlices(const Plan& plan);

}  // namespace skiff
