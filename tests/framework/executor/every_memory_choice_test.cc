// Random programs compute the same, to the bit, with every policy of reuse, with what can be
// recomputed (by rule, between checkpoints, for a budget), and with updates and other instructions
// moved or not; dead memory is full of NaN meanwhile. So do programs with planted bugs not.
//
//   bazel test --config=opt //tests/framework/executor:every_memory_choice_test
//   bazel run --config=opt //tests/framework/executor:every_memory_choice_test -- --programs=50000
#include <gflags/gflags.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/analysis/aliasing.h"
#include "framework/analysis/op_aliasing.h"
#include "framework/analysis/plan_uses.h"
#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/op/registry.h"
#include "framework/plan/loop.h"
#include "framework/transpiler/pass.h"
#include "framework/transpiler/pass_context.h"
#include "tests/harness/all_cases.h"
#include "tests/harness/memory_check.h"
#include "tests/harness/random_workload.h"

DEFINE_uint64(programs, 400, "how many random programs are tried");
DEFINE_uint64(first_program, 0, "the first one's number");

namespace skiff::harness {
namespace {

constexpr uint64_t kProgramsATest = 50;

// Of 5 to 200 ops, before the gradients; most have a few dozens.
Workload Draw(uint64_t number) {
  constexpr int kOps[] = {5, 8, 14, 14, 20, 14, 30, 14, 14, 60};
  const int ops = number % 100 == 99 ? 200 : kOps[number % std::size(kOps)];
  return RandomWorkload(DefaultOpRegistry(), AllCases(), number, {.ops = ops});
}

// How many programs have what makes reuse difficult.
class Coverage {
 public:
  void Count(const Workload& workload) {
    std::set<std::string> found;
    const Program& program = *workload.programs[0];
    std::map<std::string, int> writers;
    for (const auto& op : program.root()->ops()) {
      const OpDef& def = DefaultOpRegistry().Get(op->type);
      types_.insert(op->type);
      if (!def.in_place.empty()) found.insert("in_place");
      if (!def.views.empty()) found.insert("views");
      if (!def.replayed_by.empty()) found.insert("replayed_by");
      if (def.flop) found.insert("flop");
      if (def.update) found.insert("update");
      if (def.random) found.insert("random");
      if (def.elementwise) found.insert("elementwise");
      if (def.zero_preserving) found.insert("zero_preserving");
      if (!def.running_state.empty()) found.insert("running_state");
      if (!def.data_checked_by.empty()) found.insert("data_checked_by");
      if (def.layout_rule != LayoutRule::kPlain) found.insert("layout_rule");
      for (const SlotDef& slot : def.inputs) {
        if (slot.shape_only) found.insert("shape_only");
        if (slot.checks_data) found.insert("checks_data");
      }
      std::vector<std::string> inputs = op->InputNames();
      std::ranges::sort(inputs);
      if (std::ranges::adjacent_find(inputs) != inputs.end()) found.insert("duplicated inputs");
      for (const std::string& name : op->OutputNames()) {
        const Var* var = program.root()->FindVar(name);
        if (var != nullptr && var->kind == VarKind::kSelectedRows) found.insert("selected_rows");
        if (++writers[name] == 2) found.insert("variables written twice");
        if (std::ranges::count(inputs, name) > 0)
          found.insert("variables read and written by one op");
      }
      if ((op->role() & kRoleBackward) != 0) found.insert("gradients");
    }
    for (const WorkloadRun& run : workload.runs) {
      if (run.fetches.size() > 1) found.insert("several fetches");
    }
    for (const std::string& what : found) ++programs_[what];
  }

  void Print() const {
    std::cout << types_.size() << " op types; programs with";
    const char* separator = " ";
    for (const auto& [what, programs] : programs_) {
      std::cout << separator << what << ": " << programs;
      separator = ", ";
    }
    std::cout << std::endl;
  }

 private:
  std::set<std::string> types_;
  std::map<std::string, int64_t> programs_;
};

// Nothing for the few programs whose ops refuse the data that comes to them.
std::optional<std::vector<RunTrace>> Expected(const Workload& workload,
                                              std::string* refusal = nullptr) {
  try {
    return RunWorkload(workload, NoReuse().options);
  } catch (const Error& error) {
    if (refusal != nullptr) *refusal = error.what();
    return std::nullopt;
  }
}

// The smallest program that shows the fault.
std::string Reproduction(const Workload& workload, const MemoryChoice& choice,
                         const std::string& fault) {
  const auto fails = [&](const Workload& smaller) {
    const auto expected = Expected(smaller);
    if (!expected) return false;
    const std::vector<std::string> faults = MemoryFaults(smaller, *expected, choice);
    // That an op which wrote a checkpoint was left out is another fault.
    return !faults.empty() && faults[0].starts_with("threw") == fault.starts_with("threw");
  };
  return WorkloadText(Shrink(workload, fails));
}

// The same workload with results only in the scope.
Workload WithoutFetches(Workload workload) {
  for (WorkloadRun& run : workload.runs) run.fetches.clear();
  return workload;
}

struct Trial {
  Workload workload;
  MemoryChoice choice;
};

// Those of every program, and one that takes more to find.
std::vector<Trial> TrialsOf(const Workload& workload, uint64_t number) {
  std::vector<Trial> trials;
  for (MemoryChoice& choice : MemoryChoices()) trials.push_back({workload, std::move(choice)});
  const auto checkpoints = number % 3 == 0 ? CheckpointChoice(workload, number) : std::nullopt;
  const Workload silent = WithoutFetches(workload);
  const auto budget = number % 3 == 1 ? BudgetChoice(silent, number) : std::nullopt;
  if (budget) {
    trials.push_back({silent, *budget});
  } else {
    trials.push_back({workload, checkpoints ? *checkpoints : SkippingChoice(workload)});
  }
  return trials;
}

// Whether the op is there to compute again what another one has computed.
bool IsReplay(const Instruction& instruction) {
  static const std::set<std::string> types = [] {
    std::set<std::string> replays;
    for (const std::string& type : DefaultOpRegistry().Types()) {
      replays.insert(DefaultOpRegistry().Get(type).replayed_by);
    }
    return replays;
  }();
  return types.contains(instruction.def->type);
}

class RandomProgramsTest : public ::testing::Test {
 public:
  explicit RandomProgramsTest(uint64_t first) : first_(first) {}

  void TestBody() override {
    Coverage coverage;
    std::map<std::string, int64_t> plans_with_recomputation;
    int64_t plans_reordered = 0;
    int64_t plans_with_replays = 0;
    int64_t plans_that_share = 0;
    std::vector<std::string> refused;
    const uint64_t end = std::min(first_ + kProgramsATest, FLAGS_first_program + FLAGS_programs);
    for (uint64_t number = first_; number < end; ++number) {
      const Workload workload = Draw(number);
      std::string refusal;
      const auto expected = Expected(workload, &refusal);
      if (!expected) {
        refused.push_back(StrCat("program ", number, ": ", refusal));
        continue;
      }
      coverage.Count(workload);
      for (auto& [tried, choice] : TrialsOf(workload, number)) {
        choice.options.passes.plan_observer = [&, name = choice.name](const PassReport& report,
                                                                      const Plan& plan) {
          const bool recomputes = report.pass == "recompute" && report.changes > 0;
          if (recomputes) ++plans_with_recomputation[name];
          const bool replays = recomputes && std::ranges::any_of(plan.instructions, IsReplay);
          if (replays) ++plans_with_replays;
          if (report.pass == "order" && report.changes > 0) ++plans_reordered;
          if (report.pass == "memory_reuse" && report.changes > 0) ++plans_that_share;
        };
        const std::vector<std::string> faults = MemoryFaults(tried, *expected, choice);
        if (faults.empty()) continue;
        ADD_FAILURE() << "program " << number << ", memory " << choice.name << ": " << faults[0]
                      << "\n"
                      << Reproduction(tried, choice, faults[0]);
        return;
      }
    }
    coverage.Print();
    for (const auto& [choice, plans] : plans_with_recomputation) {
      std::cout << plans << " plans recompute with " << choice << ", ";
    }
    std::cout << plans_with_replays << " replay, " << plans_reordered << " are reordered, "
              << plans_that_share << " let values share storage" << std::endl;
    for (const char* choice : {"arena_least_memory", "arena_checkpoints", "arena_budget"}) {
      EXPECT_GT(plans_with_recomputation[choice], 0) << choice;
    }
    EXPECT_GT(plans_reordered, 0);
    EXPECT_GT(plans_that_share, 0);
    EXPECT_LE(refused.size(), 2u) << Join(refused, "\n");
  }

 private:
  const uint64_t first_;
};

// The same in bfloat16 and float16, with fewer programs: what the pass widen adds shares memory.
TEST(EveryMemoryChoiceInHalf, ComputesTheSame) {
  constexpr uint64_t kPrograms = 10;
  for (uint64_t number = 0; number < kPrograms; ++number) {
    const DType dtype = number % 2 == 0 ? DType::kBFloat16 : DType::kFloat16;
    const Workload workload =
        RandomWorkload(DefaultOpRegistry(), AllCases(), number, {.precision = {.dtype = dtype}});
    EXPECT_THAT(FaultsOfEveryMemoryChoice(workload), ::testing::IsEmpty());
  }
}

// ---- planted bugs

// A pass after all others that breaks one place of a plan, the last one that fits.
class PlantedBug : public PlanPass {
 public:
  using Break = std::function<bool(Plan* plan, size_t instruction)>;
  PlantedBug(std::string name, Break broken) : name_(std::move(name)), break_(std::move(broken)) {}
  std::string_view name() const override { return name_; }
  PassReport Apply(const PassContext&, Plan* plan) const override {
    for (size_t i = plan->instructions.size(); i-- > 0;) {
      if (break_(plan, i)) return {.pass = {}, .changes = 1, .summary = "planted"};
    }
    return {.pass = {}, .changes = 0, .summary = "no place"};
  }

 private:
  std::string name_;
  Break break_;
};

PlanValue& ValueOf(Plan* plan, ValueId value) { return (*plan)[value]; }

bool IsArena(Plan* plan, ValueId value) {
  return value && ValueOf(plan, value).storage == Storage::kArena;
}

// Copies bear the op of their reader.
bool IsSameOp(const Instruction& a, const Instruction& b) {
  return a.kind == InstructionKind::kOp && b.kind == InstructionKind::kOp && a.op == b.op;
}

// The last of several reads of a value isn't known to liveness.
bool DropUse(Plan* plan, size_t i) {
  Instruction& instruction = plan->instructions[i];
  if (instruction.kind != InstructionKind::kOp) return false;
  const auto readers = DataReaders(*plan);
  for (size_t j = 0; j < instruction.inputs.size(); ++j) {
    const ValueId input = instruction.inputs[j];
    if (!IsArena(plan, input) || !instruction.reads_data[j]) continue;
    const std::vector<size_t>& of_input = readers[input];
    if (of_input.size() < 2 || of_input.back() != i || of_input[of_input.size() - 2] + 2 > i)
      continue;
    instruction.reads_data[j] = false;
    return true;
  }
  return false;
}

// A fetched value counts as dead after its last reader, since the fetch names another value.
bool ForgetFetch(Plan* plan, size_t i) {
  for (const ValueId output : plan->instructions[i].outputs) {
    if (!IsArena(plan, output)) continue;
    const auto fetch = std::ranges::find(plan->fetches, output);
    if (fetch == plan->fetches.end() || i + 2 > plan->instructions.size()) continue;
    PlanValue twin = ValueOf(plan, output);
    twin.alias_of = output;
    *fetch = plan->values.Add(std::move(twin));
    return true;
  }
  return false;
}

// An op works in place on an input that somebody reads later.
bool WorkInPlaceTooEarly(Plan* plan, size_t i) {
  const Instruction& instruction = plan->instructions[i];
  const auto readers = DataReaders(*plan);
  for (const auto& [from, to] : InPlacePairs(*plan, instruction)) {
    const ValueId input = instruction.inputs[static_cast<size_t>(from)];
    const ValueId output = instruction.outputs[static_cast<size_t>(to)];
    if (!IsArena(plan, input) || !IsArena(plan, output) || ValueOf(plan, output).alias_of) continue;
    if (StorageBytes(ValueOf(plan, input)) != StorageBytes(ValueOf(plan, output))) continue;
    if (readers[input].back() <= i) continue;
    ValueOf(plan, output).alias_of = input;
    return true;
  }
  return false;
}

// An op works in place on a view of a value that a later op reads, though none reads the view.
bool WriteOnAView(Plan* plan, size_t i) {
  const Instruction& instruction = plan->instructions[i];
  const auto readers = DataReaders(*plan);
  for (const auto& [from, to] : InPlacePairs(*plan, instruction)) {
    const ValueId view = instruction.inputs[static_cast<size_t>(from)];
    const ValueId output = instruction.outputs[static_cast<size_t>(to)];
    if (!IsArena(plan, view) || !IsArena(plan, output)) continue;
    const ValueId shown = ValueOf(plan, view).alias_of;
    if (!shown || ValueOf(plan, output).alias_of) continue;
    if (readers[view].back() > i) continue;
    const std::vector<size_t>& of_shown = readers[shown];
    if (of_shown.empty() || of_shown.back() <= i) continue;
    ValueOf(plan, output).alias_of = view;
    return true;
  }
  return false;
}

// What an op computes counts as a view of what it reads.
bool TakeForAView(Plan* plan, size_t i) {
  const Instruction& instruction = plan->instructions[i];
  if (instruction.kind != InstructionKind::kOp || !InPlacePairs(*plan, instruction).empty() ||
      !ViewPairs(*plan, instruction).empty()) {
    return false;
  }
  for (const ValueId output : instruction.outputs) {
    if (!IsArena(plan, output) || ValueOf(plan, output).alias_of) continue;
    for (size_t j = 0; j < instruction.inputs.size(); ++j) {
      const ValueId input = instruction.inputs[j];
      if (!IsArena(plan, input) || !instruction.reads_data[j]) continue;
      if (StorageBytes(ValueOf(plan, input)) != StorageBytes(ValueOf(plan, output))) continue;
      ValueOf(plan, output).alias_of = input;
      return true;
    }
  }
  return false;
}

// The reads of a value that uses another one's storage don't keep that storage alive.
bool ForgetAlias(Plan* plan, size_t i) {
  for (const ValueId output : plan->instructions[i].outputs) {
    if (!IsArena(plan, output) || !ValueOf(plan, output).alias_of) continue;
    bool found = false;
    for (size_t j = i + 2; j < plan->instructions.size(); ++j) {
      Instruction& reader = plan->instructions[j];
      for (size_t k = 0; k < reader.inputs.size(); ++k) {
        if (reader.inputs[k] != output || !reader.reads_data[k]) continue;
        reader.reads_data[k] = false;
        found = true;
      }
    }
    if (found) return true;
  }
  return false;
}

// Two instructions, of which the second reads what the first writes, change places.
bool SwapDependent(Plan* plan, size_t i) {
  if (i == 0) return false;
  Instruction& first = plan->instructions[i - 1];
  Instruction& second = plan->instructions[i];
  const bool depends = std::ranges::any_of(second.inputs, [&](ValueId input) {
    return IsArena(plan, input) && std::ranges::count(first.outputs, input) > 0;
  });
  if (!depends) return false;
  std::swap(first, second);
  return true;
}

// What an instruction that runs again has moved on moves on once more.
bool MoveStatisticsTwice(Plan* plan, size_t i) {
  Instruction& again = plan->instructions[i];
  if (again.kind != InstructionKind::kOp || again.def->running_state.empty()) return false;
  for (size_t j = 0; j < i; ++j) {
    if (!IsSameOp(plan->instructions[j], again)) continue;
    for (const auto& [input, output] : again.def->running_state) {
      for (size_t k = 0; k < again.outputs.size(); ++k) {
        if (plan->instructions[j].OutputIn(output) == plan->instructions[j].outputs[k]) {
          again.outputs[k] = plan->instructions[j].outputs[k];
        }
      }
    }
    return true;
  }
  return false;
}

// An op that draws numbers draws others when it runs again.
bool DrawOtherNumbers(Plan* plan, size_t i) {
  Instruction& again = plan->instructions[i];
  if (again.kind != InstructionKind::kOp || !again.def->random) return false;
  const bool is_second = std::any_of(
      plan->instructions.begin(), plan->instructions.begin() + static_cast<std::ptrdiff_t>(i),
      [&](const Instruction& earlier) { return IsSameOp(earlier, again); });
  if (!is_second) return false;
  auto other = std::make_shared<Op>(*again.op);
  other->id += 1000;
  again.op = other.get();
  plan->made_ops.push_back(std::move(other));
  return true;
}

// A rerun of an op reads a value that the op after it overwrites: it comes too late.
bool RunAgainTooLate(Plan* plan, size_t i) {
  if (i == 0) return false;
  Instruction& again = plan->instructions[i];
  const bool is_second = std::any_of(
      plan->instructions.begin(), plan->instructions.begin() + static_cast<std::ptrdiff_t>(i),
      [&](const Instruction& earlier) { return IsSameOp(earlier, again); });
  if (!is_second) return false;
  std::rotate(plan->instructions.begin() + static_cast<std::ptrdiff_t>(i),
              plan->instructions.begin() + static_cast<std::ptrdiff_t>(i) + 1,
              plan->instructions.end());
  return true;
}

// What computes again by saved statistics takes one for the other.
bool ReplayOtherStatistics(Plan* plan, size_t i) {
  Instruction& replay = plan->instructions[i];
  if (replay.kind != InstructionKind::kOp || !IsReplay(replay)) return false;
  const auto mean = std::ranges::find(replay.inputs, replay.InputIn("SavedMean"));
  const auto variance = std::ranges::find(replay.inputs, replay.InputIn("SavedVariance"));
  if (mean == replay.inputs.end() || variance == replay.inputs.end()) return false;
  std::iter_swap(mean, variance);
  return true;
}

// ---- in loops

// Replaces the loop of an instruction by one that `change` has changed. Returns whether it has.
template <typename Change>
bool ChangeLoop(Plan* plan, size_t i, const Change& change) {
  Instruction& instruction = plan->instructions[i];
  if (instruction.kind != InstructionKind::kLoop) return false;
  auto loop = std::make_shared<Loop>(*instruction.loop);
  if (!change(*loop)) return false;
  instruction.loop = std::move(loop);
  return true;
}

// A value that the gradient half reads stays in the scratch memory of the forward half.
bool DropAStash(Plan* plan, size_t i) {
  return ChangeLoop(plan, i, [](Loop& loop) {
    // A stack that grows would have no memory at all.
    if (loop.condition_feed >= 0) return false;
    // Not of indices: what is read at them would be anywhere.
    const auto stash = std::ranges::find_if(loop.stashes, [&](const LoopStash& candidate) {
      return IsFloat(loop.body[candidate.value].meta.dtype);
    });
    if (loop.is_gradient || stash == loop.stashes.end()) return false;
    loop.body[stash->value].storage = Storage::kArena;
    loop.stashes.erase(stash);
    return true;
  });
}

// A carried value is in each iteration what it was in the first.
bool ForgetACarry(Plan* plan, size_t i) {
  return ChangeLoop(plan, i, [](Loop& loop) {
    for (LoopFetch& fetch : loop.fetches) {
      if (fetch.kind != LoopFetch::Kind::kCarried) continue;
      const LoopFeed& feed = loop.feeds[static_cast<size_t>(fetch.feed)];
      if (feed.stack >= 0 || loop.body[fetch.value].meta.dtype == DType::kBool) continue;
      if (loop.condition_feed >= 0) continue;  // it might never end
      fetch.kind = LoopFetch::Kind::kLast;
      fetch.feed = -1;
      return true;
    }
    return false;
  });
}

// The gradient half takes the parts of the iterations from the other end.
bool SwapIterations(Plan* plan, size_t i) {
  return ChangeLoop(plan, i, [](Loop& loop) {
    if (!loop.is_gradient || loop.iterations < 2) return false;
    loop.descending = !loop.descending;
    return true;
  });
}

// A sum over the iterations is what the last one adds.
bool ForgetASum(Plan* plan, size_t i) {
  return ChangeLoop(plan, i, [](Loop& loop) {
    for (LoopFetch& fetch : loop.fetches) {
      if (fetch.kind != LoopFetch::Kind::kSum || fetch.output < 0) continue;
      fetch.kind = LoopFetch::Kind::kLast;
      return true;
    }
    return false;
  });
}

struct Planted {
  std::string name;
  PlantedBug::Break break_plan;
  bool breaks_the_plan = false;  // so that CheckPlan refuses it
};

class PlantedBugTest : public ::testing::Test {
 public:
  explicit PlantedBugTest(Planted planted) : planted_(std::move(planted)) {}

  // At least one program must show the bug; in others it happens to do no harm. A broken plan may
  // touch any memory and end its process, which shows the bug, too. So it has a process of its own.
  void TestBody() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const std::vector<MemoryChoice> choices = MemoryChoices();
    const auto choice = std::ranges::find(choices, "arena_least_memory", &MemoryChoice::name);
    ASSERT_NE(choice, choices.end());
    EXPECT_EXIT(ExitWithWhatShows(*choice), testing::ExitedWithCode(kShown), "")
        << "no program of " << kPrograms << " shows " << planted_.name;
  }

 private:
  static constexpr uint64_t kPrograms = 400;
  // Codes of the process.
  static constexpr int kShown = 0;
  static constexpr int kNotShown = 1;
  static constexpr int kEndedBeforehand = 2;

  [[noreturn]] void ExitWithWhatShows(MemoryChoice choice) const {
    static volatile std::sig_atomic_t is_broken = 0;  // a broken plan has run, or runs
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
      std::signal(signal, [](int) { _exit(is_broken != 0 ? kShown : kEndedBeforehand); });
    }
    choice.options.passes.plan_passes.push_back(
        std::make_shared<PlantedBug>(planted_.name, planted_.break_plan));
    for (uint64_t number = 0; number < kPrograms; ++number) {
      const Workload workload = Draw(number);
      const auto expected = Expected(workload);
      if (!expected) continue;
      is_broken = 1;
      const std::vector<std::string> faults = MemoryFaults(workload, *expected, choice);
      if (faults.empty()) continue;
      // Results have to differ, unless the plan's own check sees the bug first.
      if (faults[0].starts_with("threw") && !planted_.breaks_the_plan) continue;
      std::cout << "program " << number << ": " << faults[0] << std::endl;
      std::exit(kShown);
    }
    std::exit(kNotShown);
  }

  const Planted planted_;
};

// A failure comes as the ops that it takes. Some programs need most of their ops to show the bug,
// so there are at least five, and more until one has become small.
TEST(Shrinking, LeavesLittleOfAProgram) {
  MemoryChoice choice = MemoryChoices()[4];
  ASSERT_EQ(choice.name, "arena");
  choice.options.passes.plan_passes.push_back(std::make_shared<PlantedBug>("drop_use", DropUse));
  constexpr uint64_t kPrograms = 2000;
  constexpr int kShrunk = 5;
  constexpr size_t kSmall = 16;  // ops
  int shrunk = 0;
  size_t least = SIZE_MAX;
  size_t of_ops = 0;
  for (uint64_t number = 0; number < kPrograms && (shrunk < kShrunk || least > kSmall); ++number) {
    const Workload workload = Draw(number);
    size_t ops = 0;
    for (const auto& program : workload.programs) {
      ops = std::max(ops, program->root()->ops().size());
    }
    // Half of a short program would be no feat.
    if (ops <= 2 * kSmall) continue;
    // What is in a loop stays there as long as the loop does.
    const bool has_loops = std::ranges::any_of(
        workload.programs, [](const auto& program) { return program->block_count() > 1; });
    if (has_loops) continue;
    const auto unshrunk = Expected(workload);
    if (!unshrunk || MemoryFaults(workload, *unshrunk, choice).empty()) continue;
    const auto fails = [&](const Workload& smaller) {
      const auto expected = Expected(smaller);
      return expected && !MemoryFaults(smaller, *expected, choice).empty();
    };
    // One whose first run shows the fault, so that no other run need be left.
    Workload first_run = workload;
    first_run.runs.resize(1);
    if (!fails(first_run)) continue;
    const Workload small = Shrink(workload, fails);
    EXPECT_TRUE(fails(small)) << number;
    ASSERT_EQ(small.runs.size(), 1u) << number;
    ++shrunk;
    const size_t left = small.programs[small.runs[0].program]->root()->ops().size();
    if (left >= least) continue;
    least = left;
    of_ops = ops;
  }
  EXPECT_GE(shrunk, kShrunk);
  EXPECT_LE(least, kSmall);
  EXPECT_LT(2 * least, of_ops);
}

void RegisterTests() {
  for (uint64_t first = FLAGS_first_program; first < FLAGS_first_program + FLAGS_programs;
       first += kProgramsATest) {
    ::testing::RegisterTest(
        "EveryMemoryChoice", StrCat("programs_from_", first).c_str(), nullptr, nullptr, __FILE__,
        __LINE__, [first]() -> ::testing::Test* { return new RandomProgramsTest(first); });
  }
  const std::vector<Planted> all = {
      {"drop_use", DropUse},
      {"forget_fetch", ForgetFetch, true},
      {"work_in_place_too_early", WorkInPlaceTooEarly, true},
      {"forget_alias", ForgetAlias},
      {"swap_dependent", SwapDependent, true},
      {"move_statistics_twice", MoveStatisticsTwice, true},
      {"draw_other_numbers", DrawOtherNumbers},
      {"run_again_too_late", RunAgainTooLate, true},
      {"write_on_a_view", WriteOnAView, true},
      {"take_for_a_view", TakeForAView, true},
      {"replay_other_statistics", ReplayOtherStatistics},
      {"drop_a_stash", DropAStash},
      {"forget_a_carry", ForgetACarry},
      {"swap_iterations", SwapIterations},
      {"forget_a_sum", ForgetASum},
  };
  for (const Planted& planted : all) {
    ::testing::RegisterTest(
        "PlantedBug", planted.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
        [planted]() -> ::testing::Test* { return new PlantedBugTest(planted); });
  }
}

}  // namespace
}  // namespace skiff::harness

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  skiff::harness::RegisterTests();
  return RUN_ALL_TESTS();
}
