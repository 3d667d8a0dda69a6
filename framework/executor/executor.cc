// Compile copies the program and runs the program passes on the copy. A plan needs shapes, so it is
// made later, for feeds and fetches: lowering, plan passes, kernels, storage, allocation. A plan
// for ragged feeds is made for a capacity. Run keeps plans in a small cache; Bind makes one for the
// caller alone.
#include "framework/executor/executor.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "framework/analysis/verifier.h"
#include "framework/base/error.h"
#include "framework/comm/communicator.h"
#include "framework/executor/compile_option_checks.h"
#include "framework/executor/compiled_state.h"
#include "framework/executor/plan_sources.h"
#include "framework/ir/op_role.h"
#include "framework/op/declared_types.h"
#include "framework/transpiler/pass.h"
#include "memory/device.h"
#include "memory/places.h"

namespace skiff {
namespace {

bool HasOptimizerOps(const Program& program) {
  return std::ranges::any_of(program.root()->ops(),
                             [](const auto& op) { return (op->role() & kRoleOptimize) != 0; });
}

bool HasRanks(const DataParallelOptions& options) {
  return options.communicator != nullptr && options.communicator->world().size > 1;
}

// Returns the options of passes, with the passes that several ranks need.
PipelineOptions WithPassesForRanks(const CompileOptions& options) {
  PipelineOptions passes = options.passes;
  if (!HasRanks(options.data_parallel)) return passes;
  if (options.data_parallel.sync_batch_norm) passes.also.emplace_back("sync_batch_norm");
  passes.also.emplace_back("data_parallel");
  if (options.data_parallel.bucket_bytes > 0) passes.also.emplace_back("bucket_gradients");
  if (options.data_parallel.shard_optimizer) passes.also.emplace_back("shard_optimizer");
  return passes;
}

// Adds what the plans need to run collective ops with other ranks.
void ConnectRanks(const DataParallelOptions& options, PlanSources* sources) {
  if (!HasRanks(options)) return;
  sources->agreement = std::make_shared<CollectiveAgreement>(options.communicator.get());
  if (OverlapsCollectives(options, sources->place))
    sources->comm = MakeCommLink(sources->link.get(), options.device_communicator);
}

// Errors name an op by its place in the user's program, so the places are noted before passes move
// ops.
OpPositions PositionsOf(const Program& program) {
  OpPositions positions;
  for (const auto& op : program.root()->ops()) positions.emplace(op->id, positions.size());
  return positions;
}

}  // namespace

struct Executor::State {
  Place place;
  std::shared_ptr<std::recursive_mutex> mutex;  // held by who runs a program
  std::shared_ptr<DeviceLink> link;
  std::unique_ptr<Scope> owned_scope;
  Scope* scope;
  const OpRegistry* registry;
};

Executor::Executor(Place place, Scope* scope, const OpRegistry* registry)
    : state_(std::make_unique<State>()) {
  AllocatorOf(place);  // throws for a place that isn't there
  state_->place = place;
  state_->mutex = std::make_shared<std::recursive_mutex>();
  state_->link = place.is_cpu() ? DeviceLink::Host() : std::make_shared<DeviceLink>(place);
  if (scope == nullptr) state_->owned_scope = std::make_unique<Scope>();
  state_->scope = scope == nullptr ? state_->owned_scope.get() : scope;
  state_->registry = registry == nullptr ? &DefaultOpRegistry() : registry;
  // The step counter may be in a borrowed scope already, for example from a checkpoint. Then
  // training goes on from there.
  if (state_->scope->Find(kStepCounterName) == nullptr) {
    state_->scope->Set(kStepCounterName, Tensor::FromValues<int64_t>({1}, {0}));
  }
}

Executor::Executor(Executor&& other) noexcept = default;
Executor& Executor::operator=(Executor&& other) noexcept = default;
Executor::~Executor() = default;

Executor::State& Executor::state() const {
  SKIFF_ENFORCE(state_ != nullptr, kFailedPrecondition,
                "the executor was moved: expected a use of what it was moved to");
  return *state_;
}

Place Executor::place() const { return state().place; }
Scope& Executor::scope() { return *state().scope; }
const Scope& Executor::scope() const { return *state().scope; }

CompiledProgram Executor::Compile(const Program& program, const CompileOptions& options) {
  const State& own = this->state();
  // Passes ask for kernels, and these ask the device's libraries.
  const DeviceUse use = UsePlace(own.place);
  CheckCompileOptions(*own.registry, program, own.place, options);
  // Structure only: most shapes are known once there are feeds, and lowering checks them then.
  CheckProgram(*own.registry, program, {.structure_only = true});
  const std::shared_ptr<Program> compiled = program.Clone();
  TakeDeclaredTypes(*own.registry, compiled.get());
  PlanSources sources = {.registry = own.registry,
                         .program = compiled,
                         .place = own.place,
                         .scope = own.scope,
                         .positions = PositionsOf(program),
                         .options = options,
                         .trains = HasOptimizerOps(program),
                         .link = own.link,
                         .arena = std::make_shared<SharedArena>(own.link)};
  ConnectRanks(options.data_parallel, &sources);
  std::vector<PassReport> reports =
      RunProgramPasses({*own.registry, options.data_parallel}, own.place.kind, compiled.get(),
                       WithPassesForRanks(options));
// A pass must keep a sound program sound. Programs that had findings before aren't held against it.
#ifndef NDEBUG
  if (VerifyProgram(*own.registry, program).empty()) CheckProgram(*own.registry, *compiled);
#endif
  return CompiledProgram(
      std::make_shared<CompiledState>(std::move(sources), std::move(reports), own.mutex));
}

std::vector<Tensor> Executor::Run(const Program& program, const FeedList& feeds,
                                  const FetchList& fetches) {
  return Compile(program).Run(feeds, fetches);
}

}  // namespace skiff
