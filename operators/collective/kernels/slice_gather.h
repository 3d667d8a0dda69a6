// Slices of a list that go to all ranks: an all-gather, and the end of an all-reduce.
#pragma once

#include <cstdint>
#include <span>

#include "framework/op/kernel.h"
#include "operators/collective/kernels/array_list.h"
#include "operators/common/ranks/messages.h"

namespace skiff {

// Elements of a list, which belong to a rank.
struct ListSlice {
  int64_t begin = 0;
  int64_t count = 0;
};

// Sends this rank's slice, which lies at `own`, to all ranks, and sets the slices of the other
// ranks in `out`. `slices` has the slice of each rank; `scratch` has room for those of the other
// ranks. Throws what Communicator::Exchange throws.
void GatherSlices(const KernelContext& run, std::span<const ListSlice> slices, const void* own,
                  void* scratch, Messages* messages, OutArrays* out);

}  // namespace skiff
