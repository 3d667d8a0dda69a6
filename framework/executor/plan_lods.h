// The LoDs of a plan's ragged values, in each run those of its feeds and what is derived from them.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "framework/executor/bound_values.h"
#include "framework/executor/executor.h"
#include "framework/op/lod_group.h"
#include "framework/plan/plan.h"

namespace skiff {

class PlanLoDs {
 public:
  explicit PlanLoDs(const Plan& plan);

  // Returns whether the plan's shapes are right for these feeds, which have the shapes and LoD
  // levels of the plan's.
  bool Fit(const FeedList& feeds) const;
  // Gives the values the LoDs that follow from these feeds. Throws an Error (kInvalidArgument) if
  // the feeds don't fit.
  void Bind(const FeedList& feeds, BoundValues* values) const;

 private:
  struct Group {
    const LoDGroup* group = nullptr;
    std::vector<size_t> parents;  // earlier groups
    std::optional<size_t> feed;   // whose LoD it is
    std::vector<ValueId> values;
  };
  using SharedLoDs = std::vector<std::shared_ptr<const LoD>>;

  // Returns the place of a group, which it appends after those that it is derived from.
  size_t Add(const std::shared_ptr<const LoDGroup>& group);
  // Returns the LoD of each group.
  SharedLoDs Of(const FeedList& feeds) const;
  bool Fit(const SharedLoDs& lods) const;

  std::vector<Group> groups_;
};

}  // namespace skiff
