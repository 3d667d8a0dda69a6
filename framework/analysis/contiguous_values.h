// Which values of a plan lie one behind the other.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/plan/plan.h"

namespace skiff {

// A storage that lies at a fixed distance from the others of its list.
struct ContiguousSlice {
  int32_t value = -1;  // of the list
  int32_t root = -1;   // of its storage
  int64_t offset = 0;  // from the first of the list
};

// By list of Plan::contiguous, those that take part, in its order. Error (kInvalidArgument) for a
// value that the plan doesn't have, and an alignment that is no power of two or less than an
// element of a value that takes part.
std::vector<std::vector<ContiguousSlice>> ContiguousSlices(const Plan& plan);

}  // namespace skiff
