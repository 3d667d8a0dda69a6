#include "tests/framework/executor/reuse_fixture.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "framework/analysis/op_aliasing.h"
#include "framework/base/error.h"
#include "framework/ir/text.h"
#include "framework/plan/plan_text.h"
#include "framework/transpiler/pass.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/memory_check.h"
#include "tests/harness/op_case.h"
#include "tests/harness/pass_check.h"

namespace skiff {
namespace {

using harness::MemoryChoice;
using ::testing::IsEmpty;

std::vector<MemoryChoice> EveryPolicyAndRecomputation() {
  std::vector<MemoryChoice> choices;
  for (const ReusePolicy policy : kReusePolicies) {
    for (const Recompute recompute :
         {Recompute::kNothing, Recompute::kCheapOps, Recompute::kLeastMemory}) {
      if (policy == ReusePolicy::kNone && recompute != Recompute::kNothing) continue;
      choices.push_back(
          {.name = StrCat(ReusePolicyName(policy), "_", RecomputeName(recompute)),
           .options = {
               .memory = {.policy = policy, .recompute = recompute, .poison_dead_memory = true}}});
    }
  }
  return choices;
}

// Those that may change the last bits of a result.
std::vector<std::string> PassesThatRound() {
  std::vector<std::string> names;
  for (const std::string& name : ProgramPassNames()) {
    if (MakeProgramPass(name)->tolerance() > 0) names.push_back(name);
  }
  for (const std::string& name : PlanPassNames()) {
    if (MakePlanPass(name)->tolerance() > 0) names.push_back(name);
  }
  return names;
}

struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;
};

ByteRange RangeOf(const Plan& plan, ValueId value) {
  const auto& root = plan[plan.StorageOf(value)];
  return {root.offset, root.offset + StorageBytes(root)};
}

bool Meet(const ByteRange& a, const ByteRange& b) { return a.begin < b.end && b.begin < a.end; }

bool IsInArena(const Plan& plan, ValueId value) {
  return value && plan[value].storage == Storage::kArena;
}

// The outputs that show, under another shape, what one of `shown` holds.
std::set<ValueId> ViewsOf(const Plan& plan, const Instruction& instruction,
                          const std::set<ValueId>& shown) {
  std::set<ValueId> views;
  for (const auto& [from, to] : ViewPairs(plan, instruction)) {
    const ValueId input = instruction.inputs[static_cast<size_t>(from)];
    const ValueId output = instruction.outputs[static_cast<size_t>(to)];
    const bool is_alias = output && plan[output].alias_of;
    if (is_alias && shown.contains(input)) views.insert(output);
  }
  return views;
}

}  // namespace

struct ReuseFixture::BoundRun {
  Executor executor{Place::Cpu()};
  std::optional<CompiledProgram> compiled;
  std::optional<BoundProgram> bound;
};

ReuseFixture::ReuseFixture() = default;
ReuseFixture::~ReuseFixture() = default;

void ReuseFixture::UseOps(const std::string& ops, const std::string& declarations) {
  std::string text = "program { block 0 {\n" + declarations + "\n";
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "x", "y"}) {
    text += StrCat("var ", name, " float32 [8, 8]\n");
  }
  for (const char* name : {"s", "w"}) {
    text += StrCat("var ", name, " float32 [8, 8] persistable\n");
    workload_.initial[name] = Floats({8, 8}, static_cast<uint64_t>(name[0]));
  }
  workload_.programs = {ParseProgramText(text + ops + "} }")};
}

void ReuseFixture::UsePrograms(std::shared_ptr<const Program> main,
                               std::shared_ptr<const Program> startup) {
  workload_.programs = {std::move(main)};
  workload_.startup = std::move(startup);
}

void ReuseFixture::TakeProgram() {
  if (!workload_.programs.empty()) return;
  workload_.programs = {main_.Clone()};
  workload_.startup = startup_.Clone();
}

size_t ReuseFixture::AddProgram(std::shared_ptr<const Program> program) {
  TakeProgram();
  workload_.programs.push_back(std::move(program));
  return workload_.programs.size() - 1;
}

void ReuseFixture::AddRun(FeedList feeds, FetchList fetches, size_t program) {
  TakeProgram();
  workload_.runs.push_back({program, std::move(feeds), std::move(fetches)});
}

std::vector<harness::RunTrace> ReuseFixture::ExpectSameResults() {
  std::vector<harness::RunTrace> without_passes =
      RunWorkload(workload_, harness::NoPasses().options);
  for (MemoryChoice& choice : EveryPolicyAndRecomputation()) {
    choice.options.passes.skip = PassesThatRound();
    EXPECT_THAT(MemoryFaults(workload_, without_passes, choice), IsEmpty()) << choice.name;
  }
  EXPECT_THAT(FaultsOfEveryMemoryChoice(workload_), IsEmpty());
  return without_passes;
}

std::unique_ptr<ReuseFixture::BoundRun> ReuseFixture::Bind(size_t run,
                                                           const CompileOptions& options) const {
  auto made = std::make_unique<BoundRun>();
  for (const auto& [name, tensor] : workload_.initial) made->executor.scope().Assign(name, tensor);
  if (workload_.startup != nullptr) made->executor.Run(*workload_.startup);
  const harness::WorkloadRun& of = workload_.runs[run];
  made->compiled = made->executor.Compile(*workload_.programs[of.program], options);
  made->bound = made->compiled->Bind(of.feeds, of.fetches);
  return made;
}

const Plan& ReuseFixture::PlanOf(size_t run, const CompileOptions& options) {
  return bound_.emplace_back(Bind(run, options))->bound->plan();
}

std::string ReuseFixture::PlanText(size_t run, const CompileOptions& options) const {
  return PrintPlan(Bind(run, options)->bound->plan());
}

Tensor ReuseFixture::Floats(const Shape& shape, uint64_t seed) {
  return ToTensor(harness::Uniform(shape, seed), DType::kFloat32);
}

Tensor ReuseFixture::Ids(const Shape& shape, int64_t limit, uint64_t seed) {
  return ToTensor(harness::Integers(shape, seed, 0, limit), DType::kInt64);
}

std::vector<ValueId> ValuesOf(const Plan& plan, const std::string& variable) {
  std::vector<ValueId> values;
  for (const Instruction& instruction : plan.instructions) {
    for (const ValueId output : instruction.outputs) {
      if (!IsInArena(plan, output)) continue;
      if (plan[output].name == variable) values.push_back(output);
    }
  }
  return values;
}

ValueId ValueOf(const Plan& plan, const std::string& variable) {
  const std::vector<ValueId> values = ValuesOf(plan, variable);
  EXPECT_EQ(values.size(), 1u) << variable << " in\n" << PrintPlan(plan);
  return values.empty() ? ValueId() : values[0];
}

bool ShareBytes(const Plan& plan, ValueId a, ValueId b) {
  return Meet(RangeOf(plan, a), RangeOf(plan, b));
}

bool IsOverwritten(const Plan& plan, ValueId value) {
  const ByteRange range = RangeOf(plan, value);
  std::set<ValueId> shown;  // the value and its views, once it is written
  for (const Instruction& instruction : plan.instructions) {
    const std::set<ValueId> views = ViewsOf(plan, instruction, shown);
    for (const ValueId output : instruction.outputs) {
      if (!IsInArena(plan, output) || views.contains(output)) continue;
      if (!shown.empty() && Meet(range, RangeOf(plan, output))) return true;
    }
    for (size_t j = 0; j < instruction.workspace_bytes.size() && !shown.empty(); ++j) {
      const int64_t begin = instruction.workspace_offsets[j];
      if (Meet(range, {begin, begin + instruction.workspace_bytes[j]})) return true;
    }
    shown.insert(views.begin(), views.end());
    if (std::ranges::count(instruction.outputs, value) > 0) shown.insert(value);
  }
  return false;
}

int64_t CountOf(const Plan& plan, const std::string& type) {
  return std::ranges::count(plan.instructions, type, &Instruction::Name);
}

}  // namespace skiff
