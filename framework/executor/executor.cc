// Compile copies the program and runs the program passes on the copy. A plan needs shapes, so it is
// made later, for each signature of feeds and fetches: lowering, plan passes, kernels, storage,
// allocation. Run keeps plans in a small cache; Bind makes one for the caller alone.
#include "framework/executor/executor.h"

#include <algorithm>
#include <limits>
#include <list>
#include <utility>

#include "framework/analysis/memory_report.h"
#include "framework/analysis/verifier.h"
#include "framework/base/error.h"
#include "framework/executor/flat_scope.h"
#include "framework/executor/lowering.h"
#include "framework/executor/prepared_plan.h"
#include "framework/executor/storage.h"
#include "framework/ir/op_role.h"

namespace skiff {
namespace {

bool SameCounts(const std::shared_ptr<const LoDGroup>& a,
                const std::shared_ptr<const LoDGroup>& b) {
  if (a == nullptr || b == nullptr) return a == b;
  return HaveSameCounts(a->offsets, b->offsets);
}

// What a plan was made for. Shapes may depend on more than this of the LoDs; PreparedPlan::Fits
// tells.
struct Signature {
  std::vector<std::pair<std::string, TensorMeta>> feeds;
  FetchList fetches;

  friend bool operator==(const Signature& a, const Signature& b) {
    const auto same_feed = [](const auto& x, const auto& y) {
      return x.first == y.first && x.second.shape == y.second.shape &&
             x.second.dtype == y.second.dtype && SameCounts(x.second.lod, y.second.lod);
    };
    return a.fetches == b.fetches && std::ranges::equal(a.feeds, b.feeds, same_feed);
  }
};

// A group of its own for each feed: two may have equal LoDs in this run and others in the next.
std::shared_ptr<const LoDGroup> GroupOf(const Tensor& feed) {
  if (feed.lod().empty()) return nullptr;
  return std::make_shared<const LoDGroup>(LoDGroup{.offsets = feed.lod()});
}

Signature SignatureOf(const FeedList& feeds, const FetchList& fetches, Place place) {
  Signature signature;
  signature.fetches = fetches;
  for (const auto& [name, tensor] : feeds) {
    SKIFF_ENFORCE(tensor.has_data(), kInvalidArgument, "feed \"", name,
                  "\": the tensor has no data");
    SKIFF_ENFORCE(tensor.layout().is_plain(), kInvalidArgument, "feed \"", name, "\": layout ",
                  tensor.layout(), " given, plain expected");
    SKIFF_ENFORCE(tensor.place() == place, kInvalidArgument, "feed \"", name,
                  "\": the tensor is on ", tensor.place(), ", the program runs on ", place);
    signature.feeds.emplace_back(name,
                                 TensorMeta{.shape = tensor.shape(),
                                            .dtype = tensor.dtype(),
                                            .lod_level = static_cast<int32_t>(tensor.lod().size()),
                                            .layout = {},
                                            .persistable = false,
                                            .lod = GroupOf(tensor)});
  }
  return signature;
}

// A misspelt op type or candidate would otherwise force nothing, without any notice.
void CheckForcedKernels(const OpRegistry& registry, const KernelNames& kernels) {
  for (const auto& [type, name] : kernels) {
    std::vector<std::string> names;
    for (const KernelDef& kernel : registry.Kernels(type)) names.push_back(kernel.name);
    SKIFF_ENFORCE(std::ranges::count(names, name) > 0, kNotFound, "option kernels: op \"", type,
                  "\" has no kernel \"", name, "\"; there are: ", Join(names, ", "));
  }
}

void CheckMemoryOptions(const Program& program, const MemoryOptions& memory) {
  const bool by_name = memory.recompute == Recompute::kCheckpoints;
  SKIFF_ENFORCE(!by_name || !memory.checkpoints.empty(), kInvalidArgument,
                "option memory.recompute = checkpoints: expected names in memory.checkpoints");
  SKIFF_ENFORCE(by_name || memory.checkpoints.empty(), kInvalidArgument,
                "option memory.checkpoints: expected memory.recompute = checkpoints, found ",
                RecomputeName(memory.recompute));
  SKIFF_ENFORCE(memory.recompute != Recompute::kBudget || memory.budget_bytes > 0, kInvalidArgument,
                "option memory.budget_bytes = ", memory.budget_bytes,
                ": expected a positive budget");
  const int64_t alignment = memory.flat_alignment_bytes;
  SKIFF_ENFORCE(alignment > 0 && (alignment & (alignment - 1)) == 0, kInvalidArgument,
                "option memory.flat_alignment_bytes = ", alignment, ": expected a power of two");
  SKIFF_ENFORCE(memory.recompute == Recompute::kNothing || memory.policy != ReusePolicy::kNone,
                kInvalidArgument, "option memory.recompute = ", RecomputeName(memory.recompute),
                " with memory.policy = none: nothing would be saved, expected another policy");
  for (const std::string& name : memory.skip) {
    SKIFF_ENFORCE(program.root()->FindVar(name) != nullptr, kNotFound,
                  "option memory.skip: the program has no variable \"", name, "\"");
  }
}

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

bool HasOptimizerOps(const Program& program) {
  return std::ranges::any_of(program.root()->ops(),
                             [](const auto& op) { return (op->role() & kRoleOptimize) != 0; });
}

}  // namespace

struct CompiledProgram::State {
  struct CachedPlan {
    Signature signature;
    std::shared_ptr<PreparedPlan> prepared;
  };

  // The plan for a signature, made if it isn't cached or the scope's storage has moved since.
  std::shared_ptr<PreparedPlan> PlanFor(const Signature& signature, const FeedList& feeds) {
    Flatten();
    // A stale plan can never become current again, but it holds an arena. So it goes before another
    // one is allocated.
    std::erase_if(plans, [](const CachedPlan& plan) { return !plan.prepared->is_current(); });
    const auto found = std::ranges::find_if(plans, [&](const CachedPlan& plan) {
      return plan.signature == signature && plan.prepared->Fits(feeds);
    });
    if (found != plans.end()) {
      // The list is in the order of use, so that the plan at the back is the one to evict.
      plans.splice(plans.begin(), plans, found);
      return plans.front().prepared;
    }
    plans.push_front({signature, Prepare(signature)});
    while (plans.size() > options.plan_cache_capacity) plans.pop_back();
    return plans.front().prepared;
  }

  // Does nothing unless the scope's storage has moved. Must come before a plan is made: moving
  // tensors advances the scope's generation, which would make that plan stale at once.
  void Flatten() {
    if (scope->generation() == flattened_generation) return;
    flat_scope.Flatten(*registry, *program, options.memory.flat_alignment_bytes, scope);
    flattened_generation = scope->generation();
  }

  std::shared_ptr<PreparedPlan> Prepare(const Signature& signature) {
    if (options.memory.recompute == Recompute::kBudget) return PrepareWithinBudget(signature);
    return Prepare(signature, options.memory);
  }

  // The recompute pass judges plans by live values: it knows neither the workspaces of kernels nor
  // gaps in the arena. So this asks the pass for less, by the amount that the best plan so far
  // exceeds the budget, until workspaces and gaps fit in as well. It prepares plans (kernels,
  // workspaces, storage) but allocates only the one that it returns.
  std::shared_ptr<PreparedPlan> PrepareWithinBudget(const Signature& signature) {
    constexpr int kAttempts = 4;
    const int64_t budget = options.memory.budget_bytes;
    int64_t smallest = std::numeric_limits<int64_t>::max();
    const auto attempt = [&](const MemoryOptions& memory) {
      auto prepared = std::make_shared<PreparedPlan>(MakePlan(signature, memory), PlanInputs());
      smallest = std::min(smallest, prepared->plan().planned_bytes);
      return prepared->plan().planned_bytes <= budget ? prepared : nullptr;
    };
    MemoryOptions memory = options.memory;
    // If everything fits, nothing should be recomputed.
    memory.recompute = Recompute::kNothing;
    std::shared_ptr<PreparedPlan> fitting = attempt(memory);
    memory.recompute = Recompute::kBudget;
    for (int i = 0; i < kAttempts && fitting == nullptr; ++i) {
      fitting = attempt(memory);
      memory.budget_bytes = budget - std::max<int64_t>(smallest - budget, 0) * (i + 1);
    }
    // Last resorts. The smallest plan by live values isn't always the smallest by planned bytes, so
    // both are tried before the Error.
    for (const Recompute last : {Recompute::kLeastMemory, Recompute::kCheapOps}) {
      memory.recompute = last;
      if (fitting == nullptr) fitting = attempt(memory);
    }
    SKIFF_ENFORCE(fitting != nullptr, kResourceExhausted, "option memory.budget_bytes = ", budget,
                  ": the arena takes at least ", smallest, " bytes, however much is recomputed");
    return Allocated(std::move(fitting), signature, options.memory);
  }

  std::shared_ptr<PreparedPlan> Prepare(const Signature& signature, const MemoryOptions& memory) {
    auto prepared = std::make_shared<PreparedPlan>(MakePlan(signature, memory), PlanInputs());
    return Allocated(std::move(prepared), signature, memory);
  }

  std::shared_ptr<PreparedPlan> Allocated(std::shared_ptr<PreparedPlan> prepared,
                                          const Signature& signature, const MemoryOptions& memory) {
    try {
      prepared->Allocate();
      return prepared;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kResourceExhausted) throw;
      throw Error(error.code(), error.what() + LessMemory(signature, memory));
    }
  }

  // Returns a line for an Error about which options would take less memory, or nothing. Doesn't
  // count workspaces, since that would take prepared kernels. Throws nothing: a failure here must
  // not hide the Error that it explains.
  std::string LessMemory(const Signature& signature, const MemoryOptions& memory) noexcept {
    try {
      const auto planned_bytes = [&](const MemoryOptions& other) {
        Plan plan = MakePlan(signature, other, /*is_observed=*/false);
        PlanStorage(&plan);
        return plan.planned_bytes;
      };
      const int64_t now = planned_bytes(memory);
      std::vector<std::string> choices;
      const auto add = [&](const std::string& name, const MemoryOptions& other) {
        const int64_t saved = now - planned_bytes(other);
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

  // A plan that will never run isn't shown to the user's observer.
  Plan MakePlan(const Signature& signature, const MemoryOptions& memory, bool is_observed = true) {
    Plan plan = LowerProgram(*registry, *program, place, signature.feeds, signature.fetches, *scope,
                             positions);
    PipelineOptions passes = options.passes;
    if (!is_observed) passes.plan_observer = nullptr;
    RunPlanPasses({.registry = *registry, .memory = memory, .forced_kernels = options.kernels},
                  &plan, passes);
    return plan;
  }

  PreparedPlan::Inputs PlanInputs() const {
    return {.registry = registry,
            .program = program,
            .scope = scope,
            .forced_kernels = options.kernels,
            .tuner = options.tuner.get(),
            .trains = trains,
            .poison_dead_memory = options.memory.poison_dead_memory};
  }

  const OpRegistry* registry = nullptr;
  std::shared_ptr<Program> program;
  Place place;
  Scope* scope = nullptr;
  OpPositions positions;  // in the program as the user gave it
  CompileOptions options;
  bool trains = false;
  std::vector<PassReport> reports;
  FlatScope flat_scope;
  uint64_t flattened_generation = std::numeric_limits<uint64_t>::max();
  std::list<CachedPlan> plans;  // most recently used first
};

bool BoundProgram::is_current() const { return prepared_->is_current(); }

void BoundProgram::CheckCurrent() const {
  SKIFF_ENFORCE(
      is_current(), kFailedPrecondition,
      "the scope's storage has moved since Bind (a variable was set, loaded or erased): bind "
      "again");
}

void BoundProgram::Step() {
  CheckCurrent();
  prepared_->Run();
}

std::vector<InstructionTime> BoundProgram::TimedStep() {
  CheckCurrent();
  return prepared_->TimedRun();
}

const Tensor& BoundProgram::fetch(size_t i) const {
  SKIFF_ENFORCE(i < prepared_->fetches().size(), kOutOfRange, "fetch ", i, " of ",
                prepared_->fetches().size());
  return prepared_->fetches()[i];
}

PlanStatistics BoundProgram::statistics() const { return prepared_->statistics(); }
const Plan& BoundProgram::plan() const { return prepared_->plan(); }

CompiledProgram::CompiledProgram(std::unique_ptr<State> state) : state_(std::move(state)) {}
CompiledProgram::CompiledProgram(CompiledProgram&&) noexcept = default;
CompiledProgram& CompiledProgram::operator=(CompiledProgram&&) noexcept = default;
CompiledProgram::~CompiledProgram() = default;

std::vector<Tensor> CompiledProgram::Run(const FeedList& feeds, const FetchList& fetches) {
  const std::shared_ptr<PreparedPlan> prepared =
      state_->PlanFor(SignatureOf(feeds, fetches, state_->place), feeds);
  const OneRun run(prepared.get());
  prepared->BindFeeds(feeds);
  prepared->Run();
  return prepared->TakeFetches();
}

BoundProgram CompiledProgram::Bind(const FeedList& feeds, const FetchList& fetches) {
  // A plan of its own: another Bind or Run of the same signature would move its feeds.
  const Signature signature = SignatureOf(feeds, fetches, state_->place);
  state_->Flatten();
  std::shared_ptr<PreparedPlan> prepared = state_->Prepare(signature);
  prepared->BindFeeds(feeds);
  return BoundProgram(std::move(prepared));
}

const Program& CompiledProgram::program() const { return *state_->program; }
const std::vector<PassReport>& CompiledProgram::reports() const { return state_->reports; }
size_t CompiledProgram::cached_plans() const { return state_->plans.size(); }

Executor::Executor(Place place, Scope* scope, const OpRegistry* registry)
    : place_(place),
      owned_scope_(scope == nullptr ? std::make_unique<Scope>() : nullptr),
      scope_(scope == nullptr ? owned_scope_.get() : scope),
      registry_(registry == nullptr ? &DefaultOpRegistry() : registry) {
  // The step counter may be in a borrowed scope already, for example from a checkpoint. Then
  // training goes on from there.
  AllocatorOf(place);  // throws for a place that isn't there
  if (scope_->Find(kStepCounterName) == nullptr) {
    scope_->Set(kStepCounterName, Tensor::FromValues<int64_t>({1}, {0}));
  }
}

Executor::~Executor() = default;

CompiledProgram Executor::Compile(const Program& program, const CompileOptions& options) {
  CheckForcedKernels(*registry_, options.kernels);
  CheckMemoryOptions(program, options.memory);
  SKIFF_ENFORCE(options.tuner == nullptr || &options.tuner->registry() == registry_,
                kInvalidArgument, "option tuner: it was made for another registry");
  SKIFF_ENFORCE(options.plan_cache_capacity >= 1, kInvalidArgument,
                "option plan_cache_capacity = 0: expected at least 1");
  // Structure only: most shapes are known once there are feeds, and lowering checks them then.
  CheckProgram(*registry_, program, {.structure_only = true});
  auto state = std::make_unique<CompiledProgram::State>();
  state->registry = registry_;
  state->program = program.Clone();
  state->place = place_;
  state->scope = scope_;
  state->options = options;
  state->trains = HasOptimizerOps(program);
  // Errors name an op by its place in the user's program, so the places are noted before passes
  // move ops.
  for (const auto& op : program.root()->ops()) {
    state->positions.emplace(op->id, state->positions.size());
  }
  state->reports = RunProgramPasses(*registry_, state->program.get(), state->options.passes);
// A pass must keep a sound program sound. Programs that had findings before aren't held against it.
#ifndef NDEBUG
  if (VerifyProgram(*registry_, program).empty()) CheckProgram(*registry_, *state->program);
#endif
  return CompiledProgram(std::move(state));
}

std::vector<Tensor> Executor::Run(const Program& program, const FeedList& feeds,
                                  const FetchList& fetches) {
  return Compile(program).Run(feeds, fetches);
}

}  // namespace skiff
