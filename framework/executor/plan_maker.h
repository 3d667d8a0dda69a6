// Makes plans of a compiled program: lowering, then plan passes. Preparing kernels and taking
// memory follow in plan_preparation.h.
#pragma once

#include <cstdint>

#include "framework/executor/api/feed_list.h"
#include "framework/executor/lowering/segment.h"
#include "framework/executor/plan_sources.h"
#include "framework/executor/rows/row_counts.h"
#include "framework/executor/run/prepared_plan.h"
#include "framework/transpiler/api/memory_options.h"

namespace skiff {

// The feeds, fetches and segment that a plan is made for.
struct PlanRequest {
  FeedMetas feeds;           // for a capacity, widened to it
  const FetchList& fetches;  // of the user
  // The plan of the segment before; nullptr for the first segment.
  const PreparedPlan* before = nullptr;
  const CountClasses* counts = nullptr;  // of the run, if the plan is for a capacity
  bool rows_vary = false;                // PreparedPlan::Inputs::rows_vary

  size_t first_op() const { return before == nullptr ? 0 : before->next_op(); }
};

// Who sees how plan passes change a plan.
enum class Watching {
  kObserver,  // the user's observer (PipelineOptions::plan_observer)
  kNobody,    // of a plan that will never run
};

// Returns the segment of the request after the plan passes. `memory` are the options to plan with;
// `in_bodies` says what to recompute in the bodies of loops and branches. kBudget recomputes
// nothing there, since the budget is for the whole plan. Throws the Errors of LowerSegment and of
// passes, and an Error (kUnimplemented) if the plan is for a capacity and leaves the gradient of a
// loop to a later segment.
Segment MakeSegment(const PlanSources& sources, const PlanRequest& request,
                    const MemoryOptions& memory, Recompute in_bodies,
                    Watching watching = Watching::kObserver);

// Returns the bytes of the arena of the plan that these options make, without workspaces, which
// only prepared kernels know. Throws the Errors of MakeSegment.
int64_t PlannedBytes(const PlanSources& sources, const PlanRequest& request,
                     const MemoryOptions& memory);

}  // namespace skiff
