#include "framework/executor/plan_factory.h"

#include <algorithm>

#include "framework/analysis/memory_report.h"
#include "framework/base/error.h"
#include "framework/base/steady_seconds.h"
#include "framework/executor/plan_preparation.h"
#include "framework/executor/rows/feed_metas.h"

namespace skiff {

std::shared_ptr<PreparedPlan> PlanFactory::Make(const FeedList& feeds, const FetchList& fetches,
                                                const PreparedPlan* before) {
  const double start = SteadySeconds();
  const Program& program = *sources_.program;
  PlanRequest exact{.feeds = MetasOfFeeds(program, feeds), .fetches = fetches, .before = before};
  // What an earlier segment made has as many rows as its data say.
  exact.rows_vary = HasRaggedFeed(exact.feeds) || before != nullptr;
  const CountClasses counts =
      exact.rows_vary ? CountsOfFeeds(program, exact.feeds) : CountClasses();
  // The gradient half of a loop in an earlier segment is prepared already, for the exact rows.
  const bool is_exact =
      sources_.options.exact_rows || (before != nullptr && !before->gradients_after().empty());
  // Some ops refuse tensors without rows, and they do so when their kernels are prepared.
  const bool wants_capacity =
      exact.rows_vary && !is_exact && std::ranges::count(counts.counts(), 0) == 0;
  std::shared_ptr<PreparedPlan> prepared =
      wants_capacity ? MakeForCapacity(feeds, exact, counts) : nullptr;
  if (prepared == nullptr) {
    // If anything is wrong with the feeds, the Errors of this plan have the numbers that the user
    // knows.
    prepared = PreparePlan(sources_, exact);
    SKIFF_ENFORCE(prepared->BindFeeds(feeds), kFailedPrecondition,
                  "the plan doesn't serve the feeds that it was made for");
  }
  ++sources_.statistics->plans;
  sources_.statistics->plan_seconds += SteadySeconds() - start;
  return prepared;
}

std::shared_ptr<PreparedPlan> PlanFactory::MakeForCapacity(const FeedList& feeds,
                                                           const PlanRequest& exact,
                                                           const CountClasses& counts) {
  const ExactPlan key(exact.first_op(), exact.fetches, counts.Capacity(), counts.classes());
  if (exact_plans_.contains(key)) return nullptr;
  try {
    auto prepared = PreparePlan(sources_, {.feeds = counts.Widened(exact.feeds, counts.Capacity()),
                                           .fetches = exact.fetches,
                                           .before = exact.before,
                                           .counts = &counts,
                                           .rows_vary = true});
    return prepared->BindFeeds(feeds) ? prepared : nullptr;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kResourceExhausted) {
      throw Error(error.code(), error.what() + CapacityText(exact, counts));
    }
    // PlanRows, MakeSegment: it will be no different for other runs with this capacity. What else
    // is wrong may be so for these feeds alone, so that later runs mustn't depend on it.
    if (error.code() == ErrorCode::kUnimplemented) exact_plans_.insert(key);
    return nullptr;
  }
}

std::string PlanFactory::CapacityText(const PlanRequest& exact,
                                      const CountClasses& counts) const noexcept {
  try {
    std::vector<std::string> rounded;
    const std::vector<int64_t> capacity = counts.Capacity();
    for (size_t i = 0; i < capacity.size(); ++i) {
      rounded.push_back(StrCat(capacity[i], " for ", counts.counts()[i]));
    }
    const int64_t bytes = PlannedBytes(sources_, exact, sources_.options.memory);
    return StrCat("\nplanned for the rows and sequences that these feeds round up to (",
                  Join(rounded, ", "), "); exact_rows: about ", MebibytesText(bytes),
                  " and workspaces");
  } catch (...) {
    return {};
  }
}

}  // namespace skiff
