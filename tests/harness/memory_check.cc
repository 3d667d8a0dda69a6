#include "tests/harness/memory_check.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/ir/text.h"
#include "framework/plan/plan.h"
#include "framework/plan/value_id.h"
#include "memory/reuse_policy.h"

namespace skiff::harness {
namespace {

// More faults of one choice add no information.
constexpr size_t kMaxFaultsOfAChoice = 8;

MemoryChoice Choose(std::string name, ReusePolicy policy, Recompute recompute) {
  MemoryChoice choice{.name = std::move(name)};
  choice.options.memory.policy = policy;
  choice.options.memory.recompute = recompute;
  choice.options.memory.poison_dead_memory = true;
  return choice;
}

// Calls `look` with the plan of each run.
void LookAtPlans(const Workload& workload, const CompileOptions& options,
                 const std::function<void(const Plan&)>& look) {
  Executor executor(Place::Cpu());
  for (const auto& [name, tensor] : workload.initial) executor.scope().Assign(name, tensor);
  if (workload.startup != nullptr) executor.Run(*workload.startup);
  std::vector<CompiledProgram> programs;
  for (const auto& program : workload.programs) {
    programs.push_back(executor.Compile(*program, options));
  }
  for (const WorkloadRun& run : workload.runs) {
    look(programs[run.program].Bind(run.feeds, run.fetches).plan());
  }
}

// Returns whether a run needs more than one plan.
bool HasSegments(const Workload& workload) {
  Executor executor(Place::Cpu());
  for (const auto& [name, tensor] : workload.initial) executor.scope().Assign(name, tensor);
  if (workload.startup != nullptr) executor.Run(*workload.startup);
  return std::ranges::any_of(workload.runs, [&](const WorkloadRun& run) {
    CompiledProgram program = executor.Compile(*workload.programs[run.program]);
    program.Run(run.feeds, run.fetches);
    return program.preparation().plans > 1;
  });
}

// Returns the largest arena of all runs.
int64_t PlannedBytes(const Workload& workload, Recompute recompute) {
  int64_t most = 0;
  LookAtPlans(workload, {.memory = {.recompute = recompute}},
              [&](const Plan& plan) { most = std::max(most, plan.planned_bytes); });
  return most;
}

// Returns the variables that a plan writes before its backward pass, except those with several
// definitions; nullopt for a plan without a backward pass.
std::optional<std::set<std::string>> ForwardVariables(const Plan& plan) {
  const auto backward = std::ranges::find_if(
      plan.instructions, [](const Instruction& i) { return (i.op->role() & kRoleBackward) != 0; });
  if (backward == plan.instructions.end()) return std::nullopt;
  std::map<std::string, int> definitions;
  for (const PlanValue& value : plan.values) ++definitions[value.name];
  std::set<std::string> names;
  for (auto it = plan.instructions.begin(); it != backward; ++it) {
    const std::vector<std::string> written = it->op->OutputNames();
    for (const ValueId output : it->outputs) {
      if (!output) continue;
      const std::string& name = plan[output].name;
      // The stacks of a loop are no variables of the program.
      const bool is_loop = it->kind == InstructionKind::kLoop;
      if (is_loop && std::ranges::find(written, name) == written.end()) continue;
      if (definitions[name] == 1) names.insert(name);
    }
  }
  return names;
}

// Removes all elements that the failure doesn't need, in ever smaller pieces (Zeller, Hildebrandt,
// "Simplifying and Isolating Failure-Inducing Input", 2002; only complements are tried). `without`
// returns the workload without elements [begin, end); `count` returns their number.
template <typename Count, typename Without>
void LeaveOut(const Count& count, const Without& without,
              const std::function<bool(const Workload&)>& fails, Workload* workload) {
  for (size_t piece = std::max<size_t>(count(*workload) / 2, 1); piece > 0; piece /= 2) {
    for (size_t begin = 0; begin < count(*workload);) {
      const size_t end = std::min(begin + piece, count(*workload));
      Workload smaller = without(*workload, begin, end);
      if (fails(smaller)) {
        *workload = std::move(smaller);
      } else {
        begin = end;
      }
    }
  }
}

template <typename T>
void EraseRange(std::vector<T>* elements, size_t begin, size_t end) {
  elements->erase(elements->begin() + static_cast<std::ptrdiff_t>(begin),
                  elements->begin() + static_cast<std::ptrdiff_t>(end));
}

using Fails = std::function<bool(const Workload&)>;

void LeaveOutFetches(const Fails& fails, Workload* small) {
  for (size_t run = 0; run < small->runs.size(); ++run) {
    LeaveOut([run](const Workload& w) { return w.runs[run].fetches.size(); },
             [run](Workload w, size_t begin, size_t end) {
               EraseRange(&w.runs[run].fetches, begin, end);
               return w;
             },
             fails, small);
  }
}

void LeaveOutOps(const Fails& fails, Workload* small) {
  for (size_t program = 0; program < small->programs.size(); ++program) {
    LeaveOut([program](const Workload& w) { return w.programs[program]->root()->ops().size(); },
             [program](Workload w, size_t begin, size_t end) {
               std::unique_ptr<Program> without = w.programs[program]->Clone();
               without->root()->RemoveOps(begin, end);
               w.programs[program] = std::move(without);
               return w;
             },
             fails, small);
  }
}

// Returns the number of ops and fetches.
size_t SizeOf(const Workload& workload) {
  size_t size = 0;
  for (const WorkloadRun& run : workload.runs) size += run.fetches.size();
  for (const auto& program : workload.programs) size += program->root()->ops().size();
  return size;
}

// Returns the workload with the first of its runs that fails alone; if none does, the workload.
Workload WithOneRun(const Workload& workload, const Fails& fails) {
  for (const WorkloadRun& run : workload.runs) {
    Workload alone = workload;
    alone.runs = {run};
    if (fails(alone)) return alone;
  }
  return workload;
}

}  // namespace

MemoryChoice NoReuse() {
  return {.name = "no_reuse",
          .options = {.memory = {.policy = ReusePolicy::kNone, .guards = true}}};
}

std::vector<MemoryChoice> MemoryChoices() {
  std::vector<MemoryChoice> choices;
  for (const ReusePolicy policy : kReusePolicies) {
    choices.push_back(Choose(std::string(ReusePolicyName(policy)), policy, Recompute::kNothing));
  }
  for (const Recompute recompute : {Recompute::kCheapOps, Recompute::kLeastMemory}) {
    choices.push_back(
        Choose(StrCat("arena_", RecomputeName(recompute)), ReusePolicy::kArena, recompute));
  }
  choices.push_back(Choose("grow_least_memory", ReusePolicy::kGrow, Recompute::kLeastMemory));
  choices.push_back(Choose("late_updates", ReusePolicy::kArena, Recompute::kNothing));
  choices.back().options.passes.skip = {"early_update"};
  choices.push_back(
      Choose("given_order_least_memory", ReusePolicy::kArena, Recompute::kLeastMemory));
  choices.back().options.passes.skip = {"early_update", "order"};
  return choices;
}

MemoryChoice SkippingChoice(const Workload& workload) {
  MemoryChoice choice = Choose("arena_skipping", ReusePolicy::kArena, Recompute::kLeastMemory);
  size_t count = 0;
  for (const auto& var : workload.programs[0]->root()->vars()) {
    const bool is_everywhere = std::ranges::all_of(workload.programs, [&](const auto& program) {
      return program->root()->FindVar(var->name) != nullptr;
    });
    if (is_everywhere && count++ % 4 == 0) choice.options.memory.skip.push_back(var->name);
  }
  return choice;
}

std::optional<MemoryChoice> CheckpointChoice(const Workload& workload, uint64_t seed) {
  std::optional<std::set<std::string>> everywhere;
  // The plan that the recompute pass sees, in which no value is hidden in a fused instruction yet.
  CompileOptions options = NoReuse().options;
  options.passes.skip = {"fuse_elementwise"};
  LookAtPlans(workload, options, [&](const Plan& plan) {
    const std::optional<std::set<std::string>> names = ForwardVariables(plan);
    if (!names) return;
    if (!everywhere) everywhere = names;
    std::erase_if(*everywhere, [&](const std::string& name) { return !names->contains(name); });
  });
  if (!everywhere || everywhere->empty()) return std::nullopt;
  MemoryChoice choice = Choose("arena_checkpoints", ReusePolicy::kArena, Recompute::kCheckpoints);
  std::mt19937_64 random(seed);
  const uint64_t count = 1 + random() % std::min<uint64_t>(everywhere->size(), 6);
  std::ranges::sample(*everywhere, std::back_inserter(choice.options.memory.checkpoints),
                      static_cast<std::ptrdiff_t>(count), random);
  return choice;
}

std::optional<MemoryChoice> BudgetChoice(const Workload& workload, uint64_t seed) {
  if (HasSegments(workload)) return std::nullopt;
  const int64_t least = PlannedBytes(workload, Recompute::kLeastMemory);
  const int64_t kept = PlannedBytes(workload, Recompute::kNothing);
  MemoryChoice choice = Choose("arena_budget", ReusePolicy::kArena, Recompute::kBudget);
  constexpr uint64_t kParts = 4;
  const auto part = static_cast<int64_t>(std::mt19937_64(seed)() % kParts);
  const int64_t budget = least + (kept - least) * part / static_cast<int64_t>(kParts);
  // A plan can't do with less than `least`, and a budget of 0 isn't valid.
  choice.options.memory.budget_bytes = std::max({budget, least, int64_t{1}});
  return choice;
}

std::vector<std::string> MemoryFaults(const Workload& workload,
                                      const std::vector<RunTrace>& without_reuse,
                                      const MemoryChoice& choice) {
  try {
    return TraceDifferences(workload, without_reuse, RunWorkload(workload, choice.options), 0);
  } catch (const std::exception& error) {
    return {StrCat("threw: ", error.what())};
  }
}

std::vector<std::string> FaultsOfEveryMemoryChoice(const Workload& workload) {
  const std::vector<RunTrace> without_reuse = RunWorkload(workload, NoReuse().options);
  std::vector<std::string> all;
  for (const MemoryChoice& choice : MemoryChoices()) {
    const std::vector<std::string> faults = MemoryFaults(workload, without_reuse, choice);
    for (size_t i = 0; i < std::min(faults.size(), kMaxFaultsOfAChoice); ++i) {
      all.push_back(StrCat(workload.name, ", memory ", choice.name, ": ", faults[i]));
    }
  }
  return all;
}

Workload Shrink(const Workload& workload, const std::function<bool(const Workload&)>& fails) {
  Workload small = WithOneRun(workload, fails);
  LeaveOut([](const Workload& w) { return w.runs.size(); },
           [](Workload w, size_t begin, size_t end) {
             EraseRange(&w.runs, begin, end);
             return w;
           },
           fails, &small);
  // What one round leaves out may make more unnecessary.
  for (size_t before = SIZE_MAX; SizeOf(small) < before;) {
    before = SizeOf(small);
    LeaveOutFetches(fails, &small);
    LeaveOutOps(fails, &small);
  }
  return small;
}

std::string WorkloadText(const Workload& workload) {
  std::string text;
  for (size_t i = 0; i < workload.programs.size(); ++i) {
    const bool runs = std::ranges::count(workload.runs, i, &WorkloadRun::program) > 0;
    if (runs) text += StrCat("# program ", i, "\n", PrintProgram(*workload.programs[i]), "\n");
  }
  for (const WorkloadRun& run : workload.runs) {
    text += StrCat("# runs program ", run.program, ", fetches ", Join(run.fetches, ", "), "\n");
  }
  return text;
}

}  // namespace skiff::harness
