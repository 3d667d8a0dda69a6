// A LoD group: values that have the same LoD in every run.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "framework/tensor/tensor.h"

namespace skiff {

struct LoDGroup {
  // Writes the offsets of a group, given those of its parents. `offsets` may hold those of another
  // run, so that a run takes no memory for its own.
  using Derive = std::function<void(std::span<const LoD* const> parents, LoD* offsets)>;

  // The offsets in the run that a plan was made for. In other runs of that plan, each level has
  // other offsets, but as many, and the lowest one ends with as many rows.
  LoD offsets;
  // None for the group of a feed.
  std::vector<std::shared_ptr<const LoDGroup>> parents = {};
  Derive derive = {};
};

// Returns whether two LoDs have the same number of levels, of sequences in each level, and of rows.
bool HaveSameCounts(const LoD& a, const LoD& b);

}  // namespace skiff
