#include "framework/executor/plan_preparation.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "framework/analysis/memory_report.h"
#include "framework/base/error.h"

namespace skiff {
namespace {

PreparedPlan::Inputs InputsOfPlan(const PlanSources& sources, const PlanRequest& request) {
  return {.registry = sources.registry,
          .program = sources.program,
          .scope = sources.scope,
          .forced_kernels = sources.options.kernels,
          .tuner = sources.options.tuner.get(),
          .link = sources.link,
          .comm = sources.comm,
          .agreement = sources.agreement,
          .arena = sources.arena,
          .statistics = sources.statistics,
          .counts = request.counts,
          .rows_vary = request.rows_vary,
          .math = sources.options.math,
          .trains = sources.trains,
          .data_parallel = sources.options.data_parallel,
          .poison_dead_memory = sources.options.memory.poison_dead_memory,
          .graphs = sources.options.graphs};
}

// Returns a plan that has no memory yet.
std::shared_ptr<PreparedPlan> Prepare(const PlanSources& sources, const PlanRequest& request,
                                      const MemoryOptions& memory, Recompute in_bodies) {
  return std::make_shared<PreparedPlan>(MakeSegment(sources, request, memory, in_bodies),
                                        InputsOfPlan(sources, request));
}

// Looks for a plan whose arena is within the budget. The recompute pass judges plans by live
// values: it knows neither the workspaces of kernels nor gaps in the arena. So the search asks the
// pass for less, by the amount that the best plan so far exceeds the budget, until workspaces and
// gaps fit in as well. It prepares plans (kernels, workspaces, storage) and allocates none.
class BudgetSearch {
 public:
  // What it is given must outlive it.
  BudgetSearch(const PlanSources& sources, const PlanRequest& request)
      : sources_(sources),
        request_(request),
        budget_(sources.options.memory.budget_bytes),
        memory_(sources.options.memory) {}

  // Throws an Error (kResourceExhausted) if no plan fits. Must be called once.
  std::shared_ptr<PreparedPlan> Run() {
    // If everything fits, nothing should be recomputed.
    memory_.recompute = Recompute::kNothing;
    Attempt(Recompute::kNothing);
    memory_.recompute = Recompute::kBudget;
    // The pass sees what the iterations of a loop leave, but not how they could leave less.
    AttemptWithBudget(Recompute::kNothing);
    if (sources_.program->block_count() > 1) {
      AttemptWithBudget(Recompute::kCheapOps);
      AttemptWithBudget(Recompute::kLeastMemory);
    }
    // Last resorts. The smallest plan by live values isn't always the smallest by planned bytes, so
    // both are tried before the Error.
    for (const Recompute last : {Recompute::kLeastMemory, Recompute::kCheapOps}) {
      memory_.recompute = last;
      Attempt(last);
    }
    SKIFF_ENFORCE(fitting_ != nullptr, kResourceExhausted, "option memory.budget_bytes = ", budget_,
                  ": the arena takes at least ", smallest_, " bytes, however much is recomputed");
    return std::move(fitting_);
  }

 private:
  // Prepares a plan with the current options, unless a plan fits already.
  void Attempt(Recompute in_bodies) {
    if (fitting_ != nullptr) return;
    std::shared_ptr<PreparedPlan> prepared = Prepare(sources_, request_, memory_, in_bodies);
    const int64_t bytes = prepared->plan().planned_bytes;
    smallest_ = std::min(smallest_, bytes);
    if (bytes <= budget_) fitting_ = std::move(prepared);
  }

  void AttemptWithBudget(Recompute in_bodies) {
    constexpr int kAttempts = 4;
    memory_.budget_bytes = budget_;
    for (int i = 1; i <= kAttempts; ++i) {
      Attempt(in_bodies);
      memory_.budget_bytes = budget_ - std::max<int64_t>(smallest_ - budget_, 0) * i;
    }
  }

  const PlanSources& sources_;
  const PlanRequest& request_;
  const int64_t budget_;
  MemoryOptions memory_;  // of the attempt
  int64_t smallest_ = std::numeric_limits<int64_t>::max();
  std::shared_ptr<PreparedPlan> fitting_;
};

// Returns a line for an Error about which options would take less memory, or nothing. Throws
// nothing: a failure here must not hide the Error that it explains.
std::string LessMemory(const PlanSources& sources, const PlanRequest& request) noexcept {
  try {
    const MemoryOptions& memory = sources.options.memory;
    const int64_t now = PlannedBytes(sources, request, memory);
    std::vector<std::string> choices;
    const auto add = [&](const std::string& name, const MemoryOptions& other) {
      const int64_t saved = now - PlannedBytes(sources, request, other);
      if (saved > 0) choices.push_back(StrCat(name, " (about ", MebibytesText(saved), " less)"));
    };
    MemoryOptions other = memory;
    other.policy = ReusePolicy::kArena;
    if (memory.policy != other.policy) add("memory.policy arena", other);
    for (const Recompute recompute : {Recompute::kCheapOps, Recompute::kLeastMemory}) {
      other.recompute = recompute;
      add(StrCat("memory.recompute ", RecomputeName(recompute)), other);
    }
    return choices.empty() ? "" : StrCat("\nless memory takes: ", Join(choices, ", "));
  } catch (...) {
    return {};
  }
}

}  // namespace

std::shared_ptr<PreparedPlan> PreparePlan(const PlanSources& sources, const PlanRequest& request) {
  const MemoryOptions& memory = sources.options.memory;
  std::shared_ptr<PreparedPlan> prepared =
      memory.recompute == Recompute::kBudget ? BudgetSearch(sources, request).Run()
                                             : Prepare(sources, request, memory, memory.recompute);
  try {
    prepared->Allocate();
    return prepared;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kResourceExhausted) throw;
    throw Error(error.code(), error.what() + LessMemory(sources, request));
  }
}

}  // namespace skiff
