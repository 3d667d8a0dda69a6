// LoD groups: which values of a plan have the same LoD, whatever LoDs its feeds have.
//
// A plan is made for one run and serves other runs, in which two LoDs that were equal may differ.
// So a plan doesn't compare LoDs but groups: values with the same LoDGroup object have equal LoDs
// in every run of the plan; of values with different groups nothing is known.
//
// Each ragged feed has a group of its own. A shape rule gives an output the group of an input
// (OpContext::ShareLoD, SetOutputLike), or a new group with a LoD that is a function of the inputs'
// LoDs (OpContext::DeriveLoD). Before the first kernel of a run, the executor computes the LoDs of
// all groups from those of the feeds.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "framework/tensor/tensor.h"

namespace skiff {

struct LoDGroup {
  // Sets `lod` to the LoD of the group, given the LoDs of the parents in order. The plan calls the
  // function when it is made and again before each run, so the result must depend on nothing but
  // `parents` and captured values. `lod` is empty or holds the LoD of another run: change `lod` in
  // place (resize, assign), so that no memory is taken. Throws an Error (kInvalidArgument), which
  // begins with the type of the op, for LoDs that don't fit together: the plan then doesn't serve
  // the run.
  using Derive = std::function<void(std::span<const LoD* const> parents, LoD* lod)>;

  // The LoD in the run that the plan was made for. In a plan for a capacity, the LoD after the
  // feeds were widened to the capacity. Only shape rules may rely on it.
  LoD offsets;
  // The groups of the inputs that `derive` reads.
  std::vector<std::shared_ptr<const LoDGroup>> parents = {};
  // Empty for the group of a feed, and for the group of a variable in the scope, which keeps
  // `offsets`.
  Derive derive = {};
};

// Returns whether two LoDs have as many levels, as many sequences in each level, and as many rows.
// The lengths of their sequences may differ.
bool HaveSameCounts(const LoD& a, const LoD& b);

}  // namespace skiff
