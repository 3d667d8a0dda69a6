// The plans of a compiled program.
#pragma once

#include <cstddef>
#include <list>
#include <memory>

#include "framework/executor/api/feed_list.h"
#include "framework/executor/plan_factory.h"
#include "framework/executor/plan_sources.h"
#include "framework/executor/run/prepared_plan.h"
#include "framework/executor/scope_arrangement.h"

namespace skiff {

class PlanCache {
 public:
  // `sources` must outlive it.
  explicit PlanCache(const PlanSources& sources) : sources_(sources), factory_(sources) {}

  // Returns a plan, bound to the feeds, for the segment after `before`, or for the first segment if
  // `before` is nullptr. Makes a plan if no cached one serves the feeds or the scope's storage has
  // moved since. The plan used least recently goes if there are more than
  // CompileOptions::plan_cache_capacity. Throws the Errors of PlanFactory::Make and
  // ScopeArrangement::Update.
  std::shared_ptr<PreparedPlan> Get(const FeedList& feeds, const FetchList& fetches,
                                    const PreparedPlan* before = nullptr);
  // Returns a new plan for the first segment, for the caller alone. Throws the same.
  std::shared_ptr<PreparedPlan> MakeOwn(const FeedList& feeds, const FetchList& fetches);

  void ArrangeScope() { arrangement_.Update(sources_); }
  size_t size() const { return plans_.size(); }
  // Drops all plans, which erase from the scope the persistables that no run has filled.
  void Clear() { plans_.clear(); }

 private:
  struct CachedPlan {
    FetchList fetches;
    std::shared_ptr<PreparedPlan> prepared;
  };

  const PlanSources& sources_;
  PlanFactory factory_;
  ScopeArrangement arrangement_;
  std::list<CachedPlan> plans_;  // most recently used first
};

}  // namespace skiff
