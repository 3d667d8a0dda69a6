// Compile copies the program and runs the program passes on the copy. A plan needs shapes, so it is
// made later, for feeds and fetches: lowering, plan passes, kernels, storage, allocation. A plan
// for ragged feeds is made for a capacity. Run keeps plans in a small cache; Bind makes one for the
// caller alone.
#include "framework/executor/executor.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <list>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include "framework/analysis/deciding_variables.h"
#include "framework/analysis/memory_report.h"
#include "framework/analysis/running_state.h"
#include "framework/analysis/verifier.h"
#include "framework/base/error.h"
#include "framework/base/steady_seconds.h"
#include "framework/executor/flat_scope.h"
#include "framework/executor/lowering.h"
#include "framework/executor/prepared_plan.h"
#include "framework/executor/scope_places.h"
#include "framework/executor/storage.h"
#include "framework/ir/op_role.h"
#include "framework/op/declared_types.h"
#include "framework/transpiler/pass.h"
#include "framework/tuning/kernel_tuner.h"
#include "memory/places.h"

namespace skiff {
namespace {

// A group of its own for each feed: two may have equal LoDs in this run and others in the next.
std::shared_ptr<const LoDGroup> GroupOf(const Tensor& feed) {
  if (feed.lod().empty()) return nullptr;
  return std::make_shared<const LoDGroup>(LoDGroup{.offsets = feed.lod()});
}

void CheckFeeds(const FeedList& feeds) {
  for (const auto& [name, tensor] : feeds) {
    SKIFF_ENFORCE(tensor.has_data(), kInvalidArgument, "feed \"", name,
                  "\": the tensor has no data");
    SKIFF_ENFORCE(tensor.layout().is_plain(), kInvalidArgument, "feed \"", name, "\": layout ",
                  tensor.layout(), " given, plain expected");
    SKIFF_ENFORCE(tensor.place().is_cpu(), kInvalidArgument, "feed \"", name,
                  "\": the tensor is on ", tensor.place(), ", expected one on the CPU");
  }
}

FeedMetas MetasOf(const FeedList& feeds) {
  FeedMetas metas;
  for (const auto& [name, tensor] : feeds) {
    metas.emplace_back(name, TensorMeta{.shape = tensor.shape(),
                                        .dtype = tensor.dtype(),
                                        .lod_level = static_cast<int32_t>(tensor.lod().size()),
                                        .layout = tensor.layout(),
                                        .persistable = false,
                                        .lod = GroupOf(tensor),
                                        .is_array = tensor.array() != nullptr});
  }
  return metas;
}

// A misspelt op type or candidate would otherwise force nothing, without any notice.
void CheckForcedKernels(const OpRegistry& registry, const KernelNames& kernels) {
  for (const auto& [type, name] : kernels) {
    std::set<std::string> names;
    for (const KernelDef& kernel : registry.Kernels(type)) names.insert(kernel.name);
    if (registry.Get(type).precision != Precision::kNone) names.emplace(kWidened);
    SKIFF_ENFORCE(names.contains(name), kNotFound, "option kernels: op \"", type,
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
  const bool saves_on_request =
      memory.recompute != Recompute::kNothing && memory.recompute != Recompute::kAlmostFree;
  SKIFF_ENFORCE(!saves_on_request || memory.policy != ReusePolicy::kNone, kInvalidArgument,
                "option memory.recompute = ", RecomputeName(memory.recompute),
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

// Recursive: an observer of passes may run a program, and what a tensor owned may be freed
// anywhere.
using Turn = std::lock_guard<std::recursive_mutex>;

bool HasOptimizerOps(const Program& program) {
  return std::ranges::any_of(program.root()->ops(),
                             [](const auto& op) { return (op->role() & kRoleOptimize) != 0; });
}

// Throws an Error if the program writes a variable of the scope. Arrays are no such variables.
void CheckWritesNoVariable(const OpRegistry& registry, const Program& program) {
  for (size_t i = 0; i < program.block_count(); ++i) {
    const Block& block = *program.block(static_cast<int32_t>(i));
    for (const auto& op : block.ops()) {
      const OpDef* def = registry.Find(op->type);
      const std::vector<std::string> kept =
          def == nullptr ? std::vector<std::string>() : KeptRunningState(*def, *op);
      for (const std::string& name : op->OutputNames()) {
        const Var* var = block.FindVar(name);
        const bool is_of_scope =
            var != nullptr && var->persistable && var->kind != VarKind::kFetchList;
        SKIFF_ENFORCE(!is_of_scope || std::ranges::count(kept, name) > 0, kFailedPrecondition,
                      "Clone: op \"", op->type, "\" writes \"", name,
                      "\" in the scope, which clones would share: expected a program that changes "
                      "no variable, such as one for inference");
      }
    }
  }
}

// Returns a scope with those variables of another one that the program has, and the step counter,
// in the same memory. Of what decides about memory it has copies.
std::unique_ptr<Scope> ScopeOfClone(const OpRegistry& registry, const Scope& scope,
                                    const Program& program) {
  const DecidingVariables deciding(registry, program);
  auto own = std::make_unique<Scope>();
  const auto take = [&](const std::string& name) {
    const Tensor* tensor = scope.Find(name);
    if (tensor == nullptr || !tensor->has_data() || own->Find(name) != nullptr) return;
    own->Set(name, deciding.Contains(name, tensor->dtype()) ? CopyToCpu(*tensor) : *tensor);
  };
  for (size_t i = 0; i < program.block_count(); ++i) {
    for (const auto& var : program.block(static_cast<int32_t>(i))->vars()) take(var->name);
  }
  take(kStepCounterName);
  return own;
}

}  // namespace

struct CompiledProgram::State {
  // Plans leave the scope without what they have reserved in it.
  ~State() {
    const Turn turn(*mutex);
    plans.clear();
  }

  struct CachedPlan {
    FetchList fetches;
    std::shared_ptr<PreparedPlan> prepared;
  };
  // A segment, by its first op, fetches, and a capacity for which there is no plan, with the
  // classes of counts.
  using ExactPlan =
      std::tuple<size_t, FetchList, std::vector<int64_t>, std::vector<std::vector<size_t>>>;
  // What a plan is made for.
  struct Request {
    FeedMetas feeds;  // for a capacity, widened to it
    const FetchList& fetches;
    size_t first_op = 0;
    const CountClasses* counts = nullptr;  // of the run, if the plan is one for a capacity
    bool rows_vary = false;                // PreparedPlan::Inputs::rows_vary
  };

  // The plan for a segment, bound to its feeds; made if none that is cached serves them or the
  // scope's storage has moved since.
  std::shared_ptr<PreparedPlan> PlanFor(const FeedList& feeds, const FetchList& fetches,
                                        size_t first_op = 0) {
    ArrangeScope();
    // A stale plan can never become current again, but it holds memory. So it goes before another
    // one is made.
    std::erase_if(plans, [](const CachedPlan& plan) { return !plan.prepared->is_current(); });
    const auto found = std::ranges::find_if(plans, [&](const CachedPlan& plan) {
      return plan.prepared->first_op() == first_op && plan.fetches == fetches &&
             (first_op == 0 || Follows(*plan.prepared)) && plan.prepared->BindFeeds(feeds);
    });
    if (found != plans.end()) {
      // The list is in the order of use, so that the plan at the back is the one to evict.
      plans.splice(plans.begin(), plans, found);
      return plans.front().prepared;
    }
    plans.push_front({fetches, MakePlanFor(feeds, fetches, first_op)});
    while (plans.size() > options.plan_cache_capacity) plans.pop_back();
    return plans.front().prepared;
  }

  // Returns whether the plan, of a later segment, begins with what the one before has left.
  bool Follows(const PreparedPlan& plan) const {
    return CanReplace(plan.arrays_before(), before->arrays_after()) &&
           CanReplace(plan.gradients_before(), before->gradients_after()) &&
           CanReplace(plan.contents_before(), before->contents_after());
  }

  // Makes a plan and binds it to the feeds.
  std::shared_ptr<PreparedPlan> MakePlanFor(const FeedList& feeds, const FetchList& fetches,
                                            size_t first_op = 0) {
    const double start = SteadySeconds();
    const FeedMetas metas = MetasOfFeeds(feeds);
    // What an earlier segment made has as many rows as its data say.
    const bool rows_vary = HasRaggedFeed(metas) || first_op > 0;
    const CountClasses counts = rows_vary ? CountsOf(metas) : CountClasses();
    // Some ops refuse tensors without rows, and they do so when their kernels are prepared.
    // The gradient half of a loop in an earlier segment is there, for the very rows.
    const bool is_exact =
        options.exact_rows || (first_op > 0 && !before->gradients_after().empty());
    const bool wants_capacity =
        rows_vary && !is_exact && std::ranges::count(counts.counts(), 0) == 0;
    std::shared_ptr<PreparedPlan> prepared =
        wants_capacity ? PlanForCapacity(feeds, metas, fetches, first_op, counts) : nullptr;
    if (prepared == nullptr) {
      // If anything is wrong with the feeds, the Errors of this plan have the numbers that the user
      // knows.
      prepared = Prepare(
          {.feeds = metas, .fetches = fetches, .first_op = first_op, .rows_vary = rows_vary});
      SKIFF_ENFORCE(prepared->BindFeeds(feeds), kFailedPrecondition,
                    "the plan doesn't serve the feeds that it was made for");
    }
    ++preparation->plans;
    preparation->plan_seconds += SteadySeconds() - start;
    return prepared;
  }

  // Runs the program from the segment of `plan` on, which is bound to its feeds; run_one(plan) runs
  // each. Returns the plan of the last segment, which has the fetches. If a segment throws, the
  // scope is as it was before the first one.
  template <typename RunOne>
  std::shared_ptr<PreparedPlan> RunSegments(std::shared_ptr<PreparedPlan> plan,
                                            const FetchList& fetches, const RunOne& run_one) {
    run_one(*plan);
    if (plan->is_last_segment()) return plan;
    std::vector<std::shared_ptr<PreparedPlan>> done;
    try {
      while (!plan->is_last_segment()) {
        const FeedList carried = plan->TakeCarried();
        done.push_back(plan);
        before = plan.get();
        plan = PlanFor(carried, fetches, plan->next_op());
        run_one(*plan);
      }
    } catch (...) {
      for (auto earlier = done.rbegin(); earlier != done.rend(); ++earlier) {
        (*earlier)->UndoRun();
      }
      for (size_t i = 1; i < done.size(); ++i) done[i]->ReleaseFeeds();
      if (plan != done.front()) plan->ReleaseFeeds();
      throw;
    }
    // The first one keeps its feeds: its owner may run it again.
    for (size_t i = 1; i < done.size(); ++i) done[i]->ReleaseFeeds();
    plan->ReleaseFeeds();
    return plan;
  }

  // Returns a plan for the runs whose counts round up to the same capacity, nullptr if there is
  // none: shapes depend on counts in another way, or something is wrong with the feeds.
  std::shared_ptr<PreparedPlan> PlanForCapacity(const FeedList& feeds, const FeedMetas& metas,
                                                const FetchList& fetches, size_t first_op,
                                                const CountClasses& counts) {
    const ExactPlan key(first_op, fetches, counts.Capacity(), counts.classes());
    if (exact_plans.contains(key)) return nullptr;
    try {
      auto prepared = Prepare({.feeds = counts.Widened(metas, counts.Capacity()),
                               .fetches = fetches,
                               .first_op = first_op,
                               .counts = &counts,
                               .rows_vary = true});
      return prepared->BindFeeds(feeds) ? prepared : nullptr;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kResourceExhausted) {
        throw Error(error.code(), error.what() + CapacityText(counts, metas, fetches, first_op));
      }
      // PlanRows, MakePlan: it will be no different for other runs with this capacity. What else is
      // wrong may be so for these feeds alone, so that later runs mustn't depend on it.
      if (error.code() == ErrorCode::kUnimplemented) exact_plans.insert(key);
      return nullptr;
    }
  }

  // Returns a line for an Error about what the capacity has to do with it. Throws nothing: a
  // failure here must not hide the Error that it explains.
  std::string CapacityText(const CountClasses& counts, const FeedMetas& metas,
                           const FetchList& fetches, size_t first_op) noexcept {
    try {
      std::vector<std::string> rounded;
      const std::vector<int64_t> capacity = counts.Capacity();
      for (size_t i = 0; i < capacity.size(); ++i) {
        rounded.push_back(StrCat(capacity[i], " for ", counts.counts()[i]));
      }
      Plan plan = MakePlan({.feeds = metas, .fetches = fetches, .first_op = first_op},
                           options.memory, options.memory.recompute, /*is_observed=*/false)
                      .plan;
      PlanStorage(&plan);
      return StrCat("\nplanned for the rows and sequences that these feeds round up to (",
                    Join(rounded, ", "), "); exact_rows: about ", MebibytesText(plan.planned_bytes),
                    " and workspaces");
    } catch (...) {
      return {};
    }
  }

  // A rank table, which an earlier segment has made, has the LoD of what it ranks.
  FeedMetas MetasOfFeeds(const FeedList& feeds) const {
    FeedMetas metas = MetasOf(feeds);
    for (auto& [name, meta] : metas) {
      const Var* var = program->root()->FindVar(name);
      if (var == nullptr || var->kind != VarKind::kLoDRankTable) continue;
      meta.shape_lod = std::exchange(meta.lod, nullptr);
      meta.lod_level = 0;
    }
    return metas;
  }

  CountClasses CountsOf(const FeedMetas& metas) const {
    std::vector<bool> varies;
    for (const auto& [name, meta] : metas) {
      const Var* var = program->root()->FindVar(name);
      varies.push_back(var != nullptr && !var->dims.empty() && var->dims[0] < 0);
    }
    return CountClasses(metas, varies);
  }

  static bool HasRaggedFeed(const FeedMetas& feeds) {
    return std::ranges::any_of(feeds, [](const auto& feed) { return feed.second.lod != nullptr; });
  }

  // Moves variables of the scope to the places and flat buffers where the program wants them. Does
  // nothing unless the scope's storage has moved or it has other variables. Must come before a plan
  // is made: moving tensors advances the scope's generation, which would make that plan stale at
  // once.
  void ArrangeScope() {
    const auto state_of_scope = [this] { return std::pair(scope->generation(), scope->size()); };
    if (state_of_scope() == arranged) return;
    MoveToPlaces(*registry, *program, place, scope);
    flat_scope.Flatten(*registry, *program, options.memory.flat_alignment_bytes, scope);
    arranged = state_of_scope();
  }

  std::shared_ptr<PreparedPlan> Prepare(const Request& request) {
    if (options.memory.recompute == Recompute::kBudget) return PrepareWithinBudget(request);
    return Prepare(request, options.memory);
  }

  // The recompute pass judges plans by live values: it knows neither the workspaces of kernels nor
  // gaps in the arena. So this asks the pass for less, by the amount that the best plan so far
  // exceeds the budget, until workspaces and gaps fit in as well. It prepares plans (kernels,
  // workspaces, storage) but allocates only the one that it returns.
  std::shared_ptr<PreparedPlan> PrepareWithinBudget(const Request& request) {
    constexpr int kAttempts = 4;
    const int64_t budget = options.memory.budget_bytes;
    int64_t smallest = std::numeric_limits<int64_t>::max();
    const auto attempt = [&](const MemoryOptions& memory,
                             Recompute in_bodies = Recompute::kNothing) {
      auto prepared =
          std::make_shared<PreparedPlan>(MakePlan(request, memory, in_bodies), PlanInputs(request));
      smallest = std::min(smallest, prepared->plan().planned_bytes);
      return prepared->plan().planned_bytes <= budget ? prepared : nullptr;
    };
    MemoryOptions memory = options.memory;
    // If everything fits, nothing should be recomputed.
    memory.recompute = Recompute::kNothing;
    std::shared_ptr<PreparedPlan> fitting = attempt(memory);
    memory.recompute = Recompute::kBudget;
    // The pass sees what the iterations of a loop leave, but not how they could leave less.
    std::vector<Recompute> in_bodies = {Recompute::kNothing};
    if (program->block_count() > 1) {
      in_bodies.insert(in_bodies.end(), {Recompute::kCheapOps, Recompute::kLeastMemory});
    }
    for (const Recompute bodies : in_bodies) {
      memory.budget_bytes = budget;
      for (int i = 0; i < kAttempts && fitting == nullptr; ++i) {
        fitting = attempt(memory, bodies);
        memory.budget_bytes = budget - std::max<int64_t>(smallest - budget, 0) * (i + 1);
      }
    }
    // Last resorts. The smallest plan by live values isn't always the smallest by planned bytes, so
    // both are tried before the Error.
    for (const Recompute last : {Recompute::kLeastMemory, Recompute::kCheapOps}) {
      memory.recompute = last;
      if (fitting == nullptr) fitting = attempt(memory, last);
    }
    SKIFF_ENFORCE(fitting != nullptr, kResourceExhausted, "option memory.budget_bytes = ", budget,
                  ": the arena takes at least ", smallest, " bytes, however much is recomputed");
    return Allocated(std::move(fitting), request, options.memory);
  }

  std::shared_ptr<PreparedPlan> Prepare(const Request& request, const MemoryOptions& memory) {
    auto prepared = std::make_shared<PreparedPlan>(MakePlan(request, memory, memory.recompute),
                                                   PlanInputs(request));
    return Allocated(std::move(prepared), request, memory);
  }

  std::shared_ptr<PreparedPlan> Allocated(std::shared_ptr<PreparedPlan> prepared,
                                          const Request& request, const MemoryOptions& memory) {
    try {
      prepared->Allocate();
      return prepared;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kResourceExhausted) throw;
      throw Error(error.code(), error.what() + LessMemory(request, memory));
    }
  }

  // Returns a line for an Error about which options would take less memory, or nothing. Doesn't
  // count workspaces, since that would take prepared kernels. Throws nothing: a failure here must
  // not hide the Error that it explains.
  std::string LessMemory(const Request& request, const MemoryOptions& memory) noexcept {
    try {
      const auto planned_bytes = [&](const MemoryOptions& other) {
        Plan plan = MakePlan(request, other, other.recompute, /*is_observed=*/false).plan;
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

  // Leaves the named checkpoints that the plan, of the root block or of a body, has values of. If
  // there are none, nothing is recomputed. A name that no block knows stays in the root's list, for
  // the pass to report.
  void KeepCheckpointsOf(const Plan& plan, bool is_root, MemoryOptions* memory) const {
    if (memory->recompute != Recompute::kCheckpoints) return;
    std::erase_if(memory->checkpoints, [&](const std::string& name) {
      bool is_inside = false;
      for (size_t i = 1; i < program->block_count(); ++i) {
        const Block& block = *program->block(static_cast<int32_t>(i));
        is_inside = is_inside || block.FindLocalVar(name) != nullptr;
      }
      if (is_root) return is_inside && program->root()->FindLocalVar(name) == nullptr;
      bool is_made = false;
      for (const ValueId value : plan.ids()) {
        is_made = is_made || (plan[value].name == name && plan[value].storage == Storage::kArena);
      }
      return !is_inside || !is_made;
    });
    if (memory->checkpoints.empty()) memory->recompute = Recompute::kNothing;
  }

  // `in_bodies`: what to recompute in the bodies of loops and branches. A plan that will never run
  // isn't shown to the user's observer.
  Segment MakePlan(const Request& request, const MemoryOptions& memory, Recompute in_bodies,
                   bool is_observed = true) {
    PipelineOptions passes = options.passes;
    if (!is_observed) passes.plan_observer = nullptr;
    const auto run_passes = [&](Plan* plan, bool is_root, bool is_segment) {
      PassContext context{.registry = *registry,
                          .memory = memory,
                          .forced_kernels = options.kernels,
                          .is_body = !is_root,
                          .is_segment = is_segment};
      if (!is_root) {
        // The budget is that of the whole plan.
        context.memory.recompute =
            in_bodies == Recompute::kBudget ? Recompute::kNothing : in_bodies;
        context.memory.skip.clear();
      }
      KeepCheckpointsOf(*plan, is_root, &context.memory);
      RunPlanPasses(context, plan, passes);
    };
    auto arrays = std::make_shared<ArrayMetas>();
    PreparedGradients gradients;
    ContentsByName contents;
    if (request.first_op > 0) {
      *arrays = before->arrays_after();
      gradients = before->gradients_after();
      contents = before->contents_after();
    }
    Segment segment =
        LowerSegment({.registry = *registry,
                      .scope = *scope,
                      .place = place,
                      .positions = positions,
                      .body_passes = [&](Plan* body) { run_passes(body, false, false); },
                      .max_loop_iterations = options.max_loop_iterations,
                      .rows_vary = request.rows_vary,
                      .is_for_capacity = request.counts != nullptr,
                      .arrays = arrays,
                      .gradients = gradients,
                      .contents = contents},
                     *program, request.feeds, request.fetches, request.first_op);
    // Before passes and kernels, which a plan that can't be would ask for memory.
    SKIFF_ENFORCE(request.counts == nullptr || segment.gradients_after.empty(), kUnimplemented,
                  "the gradient of a loop is in a later segment: expected exact rows");
    run_passes(&segment.plan, true, request.first_op > 0 || !segment.is_last);
    return segment;
  }

  PreparedPlan::Inputs PlanInputs(const Request& request) const {
    return {.registry = registry,
            .program = program,
            .scope = scope,
            .forced_kernels = options.kernels,
            .tuner = options.tuner.get(),
            .link = link,
            .arena = arena,
            .statistics = preparation,
            .counts = request.counts,
            .rows_vary = request.rows_vary,
            .math = options.math,
            .trains = trains,
            .poison_dead_memory = options.memory.poison_dead_memory,
            .graphs = options.graphs};
  }

  const OpRegistry* registry = nullptr;
  std::shared_ptr<Program> program;
  Place place;
  std::shared_ptr<std::recursive_mutex> mutex;  // the executor's; a clone has its own
  std::unique_ptr<Scope> own_scope;             // of a clone
  Scope* scope = nullptr;
  OpPositions positions;                 // in the program as the user gave it
  const PreparedPlan* before = nullptr;  // the segment before the one to plan
  CompileOptions options;
  bool trains = false;
  std::vector<PassReport> reports;
  FlatScope flat_scope;
  // Generation and number of variables of the scope after the last ArrangeScope.
  std::pair<uint64_t, size_t> arranged = {std::numeric_limits<uint64_t>::max(), 0};
  std::shared_ptr<DeviceLink> link;  // to the device of `place`; nullptr on the CPU
  std::list<CachedPlan> plans;       // most recently used first
  std::shared_ptr<SharedArena> arena;
  std::shared_ptr<PreparationStatistics> preparation = std::make_shared<PreparationStatistics>();
  std::set<ExactPlan> exact_plans;
};

struct BoundProgram::Binding {
  ~Binding() {
    const Turn turn(*state->mutex);
    prepared.reset();
  }

  std::shared_ptr<PreparedPlan> prepared;  // of the first segment
  std::shared_ptr<CompiledProgram::State> state;
  FetchList fetches;
  std::vector<Tensor> fetched = {};  // by the last segment, if there are several
  bool has_fetched = false;          // the last step has ended well
};

bool BoundProgram::is_current() const {
  const Turn turn(*binding_->state->mutex);
  return binding_->prepared->is_current();
}

void BoundProgram::CheckCurrent() const {
  SKIFF_ENFORCE(
      is_current(), kFailedPrecondition,
      "the scope's storage has moved since Bind (a variable was set, loaded or erased): bind "
      "again");
}

bool BoundProgram::Feed(const FeedList& feeds) {
  CheckFeeds(feeds);
  const Turn turn(*binding_->state->mutex);
  return is_current() && binding_->prepared->BindFeeds(feeds);
}

template <typename RunOne>
void BoundProgram::RunWith(const RunOne& run_one) {
  const Turn turn(*binding_->state->mutex);
  CheckCurrent();
  binding_->has_fetched = false;
  const auto last = binding_->state->RunSegments(binding_->prepared, binding_->fetches, run_one);
  if (last != binding_->prepared) {
    last->fetches();  // waits
    binding_->fetched = last->TakeFetches();
  }
  binding_->has_fetched = true;
}

void BoundProgram::Step() {
  RunWith([](PreparedPlan& plan) { plan.Start(); });
}

std::vector<InstructionTime> BoundProgram::TimedStep() {
  std::vector<InstructionTime> times;
  RunWith(
      [&](PreparedPlan& plan) { std::ranges::move(plan.TimedRun(), std::back_inserter(times)); });
  return times;
}

const Tensor& BoundProgram::fetch(size_t i) const {
  const Turn turn(*binding_->state->mutex);
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
  const Turn turn(*binding_->state->mutex);
  return binding_->prepared->statistics();
}
const Plan& BoundProgram::plan() const { return binding_->prepared->plan(); }

CompiledProgram::CompiledProgram(std::shared_ptr<State> state) : state_(std::move(state)) {}
CompiledProgram::CompiledProgram(CompiledProgram&&) noexcept = default;
CompiledProgram& CompiledProgram::operator=(CompiledProgram&&) noexcept = default;
CompiledProgram::~CompiledProgram() = default;

std::vector<Tensor> CompiledProgram::Run(const FeedList& feeds, const FetchList& fetches) {
  CheckFeeds(feeds);
  const Turn turn(*state_->mutex);
  const std::shared_ptr<PreparedPlan> first = state_->PlanFor(feeds, fetches);
  const OneRun run(first.get());
  return state_->RunSegments(first, fetches, [](PreparedPlan& plan) { plan.Run(); })->TakeFetches();
}

BoundProgram CompiledProgram::Bind(const FeedList& feeds, const FetchList& fetches) {
  CheckFeeds(feeds);
  const Turn turn(*state_->mutex);
  state_->ArrangeScope();
  // A plan of its own: another Bind or Run would move its feeds.
  return BoundProgram(std::make_shared<BoundProgram::Binding>(
      BoundProgram::Binding{state_->MakePlanFor(feeds, fetches), state_, fetches}));
}

CompiledProgram CompiledProgram::Clone() const {
  const Turn turn(*state_->mutex);
  SKIFF_ENFORCE(state_->place.is_cpu(), kUnimplemented, "Clone of a program on ", state_->place,
                ": expected one on the CPU");
  SKIFF_ENFORCE(state_->options.tuner == nullptr, kFailedPrecondition,
                "Clone of a program with a tuner, which is one thread's: expected one without");
  CheckWritesNoVariable(*state_->registry, *state_->program);
  state_->ArrangeScope();
  auto state = std::make_shared<State>();
  state->registry = state_->registry;
  state->program = state_->program;  // nobody changes it
  state->place = state_->place;
  state->mutex = std::make_shared<std::recursive_mutex>();
  state->own_scope = ScopeOfClone(*state_->registry, *state_->scope, *state_->program);
  state->scope = state->own_scope.get();
  state->positions = state_->positions;
  state->options = state_->options;
  state->reports = state_->reports;
  state->arena = std::make_shared<SharedArena>(nullptr);
  return CompiledProgram(std::move(state));
}

const Program& CompiledProgram::program() const { return *state_->program; }
const std::vector<PassReport>& CompiledProgram::reports() const { return state_->reports; }

size_t CompiledProgram::cached_plans() const {
  const Turn turn(*state_->mutex);
  return state_->plans.size();
}

PreparationStatistics CompiledProgram::preparation() const {
  const Turn turn(*state_->mutex);
  return *state_->preparation;
}

struct Executor::State {
  Place place;
  std::shared_ptr<std::recursive_mutex> mutex;  // held by who runs a program
  std::shared_ptr<DeviceLink> link;             // to the device; nullptr on the CPU
  std::unique_ptr<Scope> owned_scope;
  Scope* scope;
  const OpRegistry* registry;
};

Executor::Executor(Place place, Scope* scope, const OpRegistry* registry)
    : state_(std::make_unique<State>()) {
  AllocatorOf(place);  // throws for a place that isn't there
  state_->place = place;
  state_->mutex = std::make_shared<std::recursive_mutex>();
  if (!place.is_cpu()) state_->link = std::make_shared<DeviceLink>(place);
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
  CheckForcedKernels(*own.registry, options.kernels);
  CheckMemoryOptions(program, options.memory);
  SKIFF_ENFORCE(options.tuner == nullptr || &options.tuner->registry() == own.registry,
                kInvalidArgument, "option tuner: it was made for another registry");
  SKIFF_ENFORCE(options.max_loop_iterations >= 1, kInvalidArgument,
                "option max_loop_iterations = ", options.max_loop_iterations,
                ": expected at least 1");
  SKIFF_ENFORCE(options.plan_cache_capacity >= 1, kInvalidArgument,
                "option plan_cache_capacity = 0: expected at least 1");
  // Structure only: most shapes are known once there are feeds, and lowering checks them then.
  CheckProgram(*own.registry, program, {.structure_only = true});
  auto state = std::make_shared<CompiledProgram::State>();
  state->registry = own.registry;
  state->program = program.Clone();
  TakeDeclaredTypes(*own.registry, state->program.get());
  state->place = own.place;
  state->mutex = own.mutex;
  state->scope = own.scope;
  state->options = options;
  state->link = own.link;
  state->arena = std::make_shared<SharedArena>(own.link);
  state->trains = HasOptimizerOps(program);
  // Errors name an op by its place in the user's program, so the places are noted before passes
  // move ops.
  for (const auto& op : program.root()->ops()) {
    state->positions.emplace(op->id, state->positions.size());
  }
  state->reports =
      RunProgramPasses(*own.registry, own.place.kind, state->program.get(), options.passes);
// A pass must keep a sound program sound. Programs that had findings before aren't held against it.
#ifndef NDEBUG
  if (VerifyProgram(*own.registry, program).empty()) CheckProgram(*own.registry, *state->program);
#endif
  return CompiledProgram(std::move(state));
}

std::vector<Tensor> Executor::Run(const Program& program, const FeedList& feeds,
                                  const FetchList& fetches) {
  return Compile(program).Run(feeds, fetches);
}

}  // namespace skiff
