// A LoD group: values that have the same LoD in every run.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "framework/tensor/tensor.h"

namespace skiff {

struct LoDGroup {
  // Returns the offsets of a group from those of its parents.
  using Derive = std::function<LoD(std::span<const LoD* const> parents)>;

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
