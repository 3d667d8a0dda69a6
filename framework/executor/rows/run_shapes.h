// The shapes and LoDs of a plan's values in the current run. A plan for a capacity serves runs with
// other rows than its own; any other plan serves runs with other LoDs of the same counts.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "framework/executor/api/feed_list.h"
#include "framework/executor/rows/plan_lods.h"
#include "framework/executor/rows/plan_rows.h"
#include "framework/executor/rows/row_counts.h"
#include "framework/plan/plan.h"

namespace skiff {

class RunShapes {
 public:
  // `counts`: of the run for which a plan for a capacity is made; the plan's feeds are widened to
  // the capacity. nullptr for a plan for the exact counts of its feeds. Throws the Errors of
  // PlanRows. The plan must outlive the object.
  RunShapes(const OpRegistry& registry, const Plan& plan, const CountClasses* counts);

  // Lets the values of each LoD group share a LoD, which Set changes.
  void Bind(BoundValues* values) const { lods_.Bind(values); }

  // Returns whether the plan serves these feeds: they must have the names, order, dtypes, shapes
  // and LoD counts of the plan's feeds; a plan for a capacity serves all counts that round up to
  // the capacity. Then Set may follow.
  bool Serves(const FeedList& feeds);
  // Gives the values the LoDs and rows that follow from the feeds of the last Serves.
  void Set(BoundValues* values);

  bool varies() const { return rows_.has_value(); }
  // Returns whether the value may have other rows than in the plan.
  bool Varies(ValueId value) const { return varying_.contains(value); }
  // Returns whether an argument of the instruction may have other rows than in the plan.
  bool Varies(const Instruction& instruction) const;
  // Returns the plan with the current shapes, LoDs and contents, as of the last Set. Valid until
  // the next call.
  const Plan& CurrentPlan();

 private:
  bool ServesShapes(const FeedList& feeds);
  bool ServesLoDs(const FeedList& feeds);

  const OpRegistry& registry_;
  const Plan& plan_;
  PlanLoDs lods_;
  // Of a plan for a capacity.
  std::optional<CountClasses> counts_;
  std::vector<int64_t> capacity_;  // by class
  std::optional<PlanRows> rows_;
  std::set<ValueId> varying_;
  std::vector<int64_t> current_rows_;  // by form
  std::optional<Plan> current_plan_;
  bool has_current_shapes_ = false;
  // Of the run to come. Reused to save allocations.
  std::vector<int64_t> next_counts_;  // of the feeds by class, then of the LoDs
  std::vector<int64_t> next_rows_;    // by form
  std::vector<const LoD*> next_of_feeds_;
  RunLoDs next_lods_;
};

}  // namespace skiff
