// The shapes and LoDs of a plan's values in the run of the moment. A plan for a capacity serves
// runs with other rows than its own; other plans, with other LoDs of the same counts.
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
  // `counts`: of the run for which a plan for a capacity is made, whose feeds are widened to the
  // capacity; nullptr for a plan for the very counts of its feeds. Throws what PlanRows throws. The
  // plan must outlive it.
  RunShapes(const OpRegistry& registry, const Plan& plan, const CountClasses* counts);

  // Lets the values of each LoD group share a LoD, which Set changes.
  void Bind(BoundValues* values) const { lods_.Bind(values); }

  // Returns whether the plan serves these feeds: those of the plan, in their order, with its
  // dtypes, and with its shapes and the counts of its LoDs; a plan for a capacity serves all counts
  // that round up to it. Then Set may follow.
  bool Serves(const FeedList& feeds);
  // Gives the values the LoDs and rows that follow from the feeds of the last Serves.
  void Set(BoundValues* values);

  bool varies() const { return rows_.has_value(); }
  // Returns whether the value may have other rows than in the plan.
  bool Varies(ValueId value) const { return varying_.contains(value); }
  // Returns whether an argument of the instruction may have other rows than in the plan.
  bool Varies(const Instruction& instruction) const;
  // Returns the plan with the shapes, LoDs and contents of the moment, those of the last Set.
  // Valid until the next call.
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
  std::optional<Plan> moment_;
  bool moment_is_current_ = false;
  // Of the run to come. Used again, so that they take no memory.
  std::vector<int64_t> next_counts_;  // of the feeds by class, then of the LoDs
  std::vector<int64_t> next_rows_;    // by form
  std::vector<const LoD*> next_of_feeds_;
  RunLoDs next_lods_;
};

}  // namespace skiff
