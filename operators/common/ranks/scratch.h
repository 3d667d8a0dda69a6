// Scratch memory for numbers of other ranks. Factories don't know how many ranks there are, so it
// has a fixed size, and the numbers of a run come in pieces that fit into it.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/op/kernel.h"

namespace skiff {

class Scratch {
 public:
  // Requests `regions` regions for numbers of `element_bytes` each. `element_count`: the most
  // numbers that all ranks together send to a rank; kMaxElementCount if that depends on the number
  // of ranks.
  Scratch(PrepareContext& context, int64_t element_count, int64_t element_bytes, int regions);

  // Returns region i in this run.
  void* Region(const KernelContext& run, int i) const {
    return run.workspace(regions_[static_cast<size_t>(i)]);
  }
  // Returns how many elements each of the other ranks may send at a time, so that a region holds
  // all of them. It is the same on all ranks, even if they were prepared for other element counts:
  // the messages of all ranks must fit each other. Throws Error (kUnimplemented) for more ranks
  // than a region has room for.
  int64_t ElementsOfRank(int32_t ranks) const;

 private:
  int64_t most_elements_;  // of a region, however many elements there are
  std::vector<int> regions_;
};

}  // namespace skiff
