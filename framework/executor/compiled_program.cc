#include "framework/executor/compiled_program.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <mutex>

#include "framework/base/error.h"
#include "framework/executor/clone_scope.h"
#include "framework/executor/compiled_state.h"
#include "framework/executor/device/device_link.h"
#include "framework/executor/rows/feed_metas.h"
#include "framework/executor/segment_run.h"
#include "framework/executor/storage/sharded_states.h"

namespace skiff {
namespace {

// A plan stays in the cache when the run is over. Without this guard it would keep the batch alive
// there, and also fetches that a failed run hasn't filled.
class OneRun {
 public:
  explicit OneRun(PreparedPlan* plan) : plan_(plan) {}
  ~OneRun() {
    plan_->ReleaseFeeds();
    plan_->TakeFetches();
  }
  OneRun(const OneRun&) = delete;
  OneRun& operator=(const OneRun&) = delete;

 private:
  PreparedPlan* plan_;
};

}  // namespace

struct BoundProgram::Binding {
  ~Binding() {
    const Turn turn(*state);
    prepared.reset();
  }

  bool is_current() const {
    const Turn turn(*state);
    return prepared->is_current();
  }

  // Runs the program once; run_one(plan) runs each segment. Throws an Error (kFailedPrecondition)
  // if the scope's storage has moved, and what RunSegments throws.
  void Run(const std::function<void(PreparedPlan&)>& run_one) {
    const Turn turn(*state);
    SKIFF_ENFORCE(
        is_current(), kFailedPrecondition,
        "the scope's storage has moved since Bind (a variable was set, loaded or erased): "
        "bind again");
    has_fetched = false;
    const auto last = RunSegments(prepared, fetches, &state->plans, run_one);
    if (last != prepared) {
      last->fetches();  // waits
      fetched = last->TakeFetches();
    }
    has_fetched = true;
  }

  std::shared_ptr<PreparedPlan> prepared;  // of the first segment
  std::shared_ptr<CompiledState> state;
  FetchList fetches;
  std::vector<Tensor> fetched = {};  // by the last segment, if there are several
  bool has_fetched = false;          // the last step has ended well
};

bool BoundProgram::is_current() const { return binding_->is_current(); }

bool BoundProgram::Feed(const FeedList& feeds) {
  CheckFeeds(feeds);
  const Turn turn(*binding_->state);
  return is_current() && binding_->prepared->BindFeeds(feeds);
}

void BoundProgram::Step() {
  binding_->Run([](PreparedPlan& plan) { plan.Start(); });
}

std::vector<InstructionTime> BoundProgram::TimedStep() {
  std::vector<InstructionTime> times;
  binding_->Run(
      [&](PreparedPlan& plan) { std::ranges::move(plan.TimedRun(), std::back_inserter(times)); });
  return times;
}

const Tensor& BoundProgram::fetch(size_t i) const {
  const Turn turn(*binding_->state);
  SKIFF_ENFORCE(i < binding_->fetches.size(), kOutOfRange, "fetch ", i, " of ",
                binding_->fetches.size());
  SKIFF_ENFORCE(binding_->has_fetched, kFailedPrecondition, "fetch \"", binding_->fetches[i],
                "\" before the first step, or after one that has failed: expected a step before");
  const bool is_one_segment = binding_->prepared->is_last_segment();
  const std::vector<Tensor>& fetches =
      is_one_segment ? binding_->prepared->fetches() : binding_->fetched;
  return fetches[i];
}

PlanStatistics BoundProgram::statistics() const {
  const Turn turn(*binding_->state);
  return binding_->prepared->statistics();
}
const Plan& BoundProgram::plan() const { return binding_->prepared->plan(); }

CompiledProgram::CompiledProgram(std::shared_ptr<CompiledState> state) : state_(std::move(state)) {}
CompiledProgram::CompiledProgram(CompiledProgram&&) noexcept = default;
CompiledProgram& CompiledProgram::operator=(CompiledProgram&&) noexcept = default;
CompiledProgram::~CompiledProgram() = default;

std::vector<Tensor> CompiledProgram::Run(const FeedList& feeds, const FetchList& fetches) {
  CheckFeeds(feeds);
  const Turn turn(*state_);
  const std::shared_ptr<PreparedPlan> first = state_->plans.Get(feeds, fetches);
  const OneRun run(first.get());
  return RunSegments(first, fetches, &state_->plans, [](PreparedPlan& plan) { plan.Run(); })
      ->TakeFetches();
}

BoundProgram CompiledProgram::Bind(const FeedList& feeds, const FetchList& fetches) {
  CheckFeeds(feeds);
  const Turn turn(*state_);
  // A plan of its own: another Bind or Run would move its feeds.
  return BoundProgram(std::make_shared<BoundProgram::Binding>(
      BoundProgram::Binding{state_->plans.MakeOwn(feeds, fetches), state_, fetches}));
}

CompiledProgram CompiledProgram::Clone() const {
  const Turn turn(*state_);
  const PlanSources& from = state_->sources;
  SKIFF_ENFORCE(from.place.is_cpu(), kUnimplemented, "Clone of a program on ", from.place,
                ": expected one on the CPU");
  SKIFF_ENFORCE(from.options.tuner == nullptr, kFailedPrecondition,
                "Clone of a program with a tuner, which is one thread's: expected one without");
  CheckWritesNoVariable(*from.registry, *from.program);
  state_->plans.ArrangeScope();
  std::unique_ptr<Scope> scope = ScopeOfClone(*from.registry, *from.scope, *from.program);
  PlanSources sources = {.registry = from.registry,
                         .program = from.program,  // nobody changes it
                         .place = from.place,
                         .scope = scope.get(),
                         .positions = from.positions,
                         .options = from.options,
                         .arena = std::make_shared<SharedArena>(DeviceLink::Host())};
  return CompiledProgram(std::make_shared<CompiledState>(std::move(sources), state_->reports,
                                                         std::make_shared<std::recursive_mutex>(),
                                                         std::move(scope)));
}

std::unique_ptr<Scope> CompiledProgram::GatherScope() {
  const Turn turn(*state_);
  const PlanSources& sources = state_->sources;
  SKIFF_ENFORCE(!sources.scope->has_replaced_values(), kFailedPrecondition,
                "GatherScope while averages replace parameters of the scope: expected the "
                "parameters themselves");
  ShardStates(*sources.program, sources.scope);
  return GatherStates(*sources.program, *sources.scope,
                      sources.options.data_parallel.communicator.get());
}

const Program& CompiledProgram::program() const { return *state_->sources.program; }
const std::vector<PassReport>& CompiledProgram::reports() const { return state_->reports; }

size_t CompiledProgram::cached_plans() const {
  const Turn turn(*state_);
  return state_->plans.size();
}

PreparationStatistics CompiledProgram::preparation() const {
  const Turn turn(*state_);
  return *state_->sources.statistics;
}

}  // namespace skiff
