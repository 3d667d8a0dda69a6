#include "framework/transpiler/order_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "framework/analysis/verify_plan.h"
#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "framework/executor/lowering/lowering.h"
#include "framework/ir/text.h"
#include "framework/plan/plan_text.h"
#include "framework/tensor/layout_copy.h"
#include "framework/transpiler/memory_reuse_pass.h"
#include "tests/framework/executor/tiny_ops.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// after: Out = X, and reads a number, After. effect: the same as tiny_copy, for its own sake. view:
// Out = X as another shape would be. sum_of: Out = the sum of X plus a number, After. check_sum:
// tiny_sum that may refuse its data. like: Out = zeros of the shape of X, which isn't read. as:
// Out = X, in place, and doesn't read Y, but for its shape.
void RegisterOps(OpRegistry& registry) {
  const auto add = [&](const std::string& type, OpDef def, const auto& run) {
    def.type = type;
    registry.Add(std::move(def));
    registry.AddKernel(type, {.prepare = [run](PrepareContext&) { return MakeKernel(run); }});
  };
  const auto copy_x = [](const KernelContext& kernel) {
    CopyTensor(kernel.input(0), &kernel.output(0));
  };
  const auto copy_x_unless_there = [](const KernelContext& kernel) {
    if (kernel.input(0).raw_data() == kernel.output(0).raw_data()) return;
    CopyTensor(kernel.input(0), &kernel.output(0));
  };
  const auto sum = [](const KernelContext& kernel) {
    float total = kernel.inputs.size() > 1 ? kernel.input(1).data<float>()[0] : 0;
    for (const float x : kernel.input(0).values<float>()) total += x;
    kernel.output(0).data<float>()[0] = total;
  };
  OpDef copy = registry.Get("tiny_copy");
  copy.elementwise = false;
  OpDef effect = copy;
  effect.has_side_effect = true;
  add("effect", effect, copy_x);
  OpDef view = copy;
  view.in_place = view.views = {{"X", "Out"}};
  add("view", view, copy_x_unless_there);
  OpDef after = copy;
  after.inputs.push_back({.name = "After", .doc = "a number"});
  add("after", after, copy_x);
  OpDef like = copy;
  like.inputs[0].shape_only = true;
  add("like", like, [](const KernelContext& kernel) {
    std::ranges::fill(kernel.output(0).values<float>(), 0.0f);
  });
  OpDef as = copy;
  as.in_place = {{"X", "Out"}};
  as.inputs.push_back({.name = "Y", .doc = "of the same shape", .shape_only = true});
  add("as", as, copy_x_unless_there);
  OpDef sum_of = registry.Get("tiny_sum");
  OpDef check_sum = sum_of;
  check_sum.inputs[0].checks_data = true;
  add("check_sum", check_sum, sum);
  sum_of.inputs.push_back({.name = "After", .doc = "a number"});
  add("sum_of", sum_of, sum);
}

// The passes but this one and memory_reuse.
std::vector<std::string> OtherPasses() {
  std::vector<std::string> others = {"early_update"};
  for (const std::string& pass : DefaultPlanPasses()) {
    if (pass != "order" && pass != "memory_reuse") others.push_back(pass);
  }
  return others;
}

class OrderPassTest : public ::testing::Test {
 protected:
  static constexpr int64_t kExtent = 1024;

  OrderPassTest() {
    tiny::RegisterTinyOps(registry_);
    RegisterOps(registry_);
  }

  // Large variables: x is fed, v and w are in the scope, a to h are computed. Numbers: k to n are
  // computed, z is in the scope.
  std::unique_ptr<Program> Parse(const std::string& ops) {
    std::string text = "program { block 0 {\n";
    const std::string large = " float32 [" + std::to_string(kExtent) + "]";
    for (const char* name : {"v", "w"}) {
      text += "var " + std::string(name) + large + " persistable\n";
    }
    for (const char* name : {"x", "a", "b", "c", "d", "e", "f", "g", "h"}) {
      text += "var " + std::string(name) + large + "\n";
    }
    text += "var z float32 [1] persistable\n";
    for (const char* name : {"k", "l", "m", "n"}) {
      text += "var " + std::string(name) + " float32 [1]\n";
    }
    return ParseProgramText(text + ops + "} }");
  }

  static void FillScope(Scope* scope) {
    const auto numbers = [](int64_t count, float first) {
      Tensor tensor({count}, DType::kFloat32);
      for (int64_t i = 0; i < count; ++i) tensor.data<float>()[i] = first + static_cast<float>(i);
      return tensor;
    };
    scope->Set("v", numbers(kExtent, 1));
    scope->Set("w", numbers(kExtent, 2));
    scope->Set("z", numbers(1, 3));
  }

  static Tensor Fed() {
    Tensor x({kExtent}, DType::kFloat32);
    for (int64_t i = 0; i < kExtent; ++i) x.data<float>()[i] = static_cast<float>(i % 7);
    return x;
  }

  Plan Lower(const Program& program, const std::vector<std::string>& fetches) {
    Scope scope;
    FillScope(&scope);
    return LowerProgram({.registry = registry_, .scope = scope, .place = Place::Cpu()}, program,
                        {{"x", TensorMeta{.shape = {kExtent}}}}, fetches);
  }

  // Returns the first output of each instruction after the pass.
  std::vector<std::string> OrderOf(const std::string& ops,
                                   const std::vector<std::string>& fetches = {}) {
    const std::unique_ptr<Program> program = Parse(ops);
    Plan plan = Lower(*program, fetches);
    OrderPass().Apply({.registry = registry_}, &plan);
    EXPECT_THAT(VerifyPlan(plan), IsEmpty());
    ExpectTheSameResults(*program, fetches);
    return Outputs(plan);
  }

  static std::vector<std::string> Outputs(const Plan& plan) {
    std::vector<std::string> outputs;
    for (const Instruction& instruction : plan.instructions) {
      outputs.push_back(plan[instruction.outputs[0]].name);
    }
    return outputs;
  }

  struct Results {
    std::vector<std::vector<float>> fetches;
    std::vector<std::vector<float>> scope;
    std::vector<std::string> errors;
    int64_t rollback_bytes = 0;
  };

  // Of two steps.
  Results Run(const Program& program, const std::vector<std::string>& fetches, bool reorders) {
    Executor executor(Place::Cpu(), nullptr, &registry_);
    FillScope(&executor.scope());
    CompileOptions options;
    options.passes.skip = OtherPasses();
    if (!reorders) options.passes.skip.push_back("order");
    options.memory.poison_dead_memory = true;
    BoundProgram bound = executor.Compile(program, options).Bind({{"x", Fed()}}, fetches);
    Results results{.rollback_bytes = bound.statistics().rollback_bytes};
    for (int step = 0; step < 2; ++step) {
      try {
        bound.Step();
        for (size_t i = 0; i < fetches.size(); ++i) {
          results.fetches.push_back(bound.fetch(i).ToVector<float>());
        }
      } catch (const Error& error) {
        results.errors.push_back(error.what());
      }
      for (const char* name : {"v", "w", "z"}) {
        results.scope.push_back(executor.scope().Get(name).ToVector<float>());
      }
    }
    return results;
  }

  void ExpectTheSameResults(const Program& program, const std::vector<std::string>& fetches) {
    const Results as_given = Run(program, fetches, false);
    const Results reordered = Run(program, fetches, true);
    EXPECT_EQ(reordered.fetches, as_given.fetches) << PrintProgram(program);
    EXPECT_EQ(reordered.scope, as_given.scope) << PrintProgram(program);
    EXPECT_EQ(reordered.errors, as_given.errors) << PrintProgram(program);
    EXPECT_EQ(reordered.rollback_bytes, as_given.rollback_bytes) << PrintProgram(program);
  }

  OpRegistry registry_;
};

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

// Makes two large values, and then a number of each.
constexpr const char* kTwoSums = R"(
    {Out: [a]} = tiny_copy(X: [x])
    {Out: [b]} = tiny_copy(X: [x])
    {Out: [k]} = tiny_sum(X: [a])
    {Out: [l]} = tiny_sum(X: [b])
)";

TEST_F(OrderPassTest, ReadsALargeValueBeforeItMakesTheNext) {
  EXPECT_THAT(OrderOf(kTwoSums, {"k", "l"}), ElementsAre("a", "k", "b", "l"));
}

TEST_F(OrderPassTest, UpdatesAVariableAsSoonAsItsGradientIsThere) {
  EXPECT_THAT(OrderOf(R"(
    {Out: [a]} = tiny_copy(X: [x])
    {Out: [b]} = tiny_copy(X: [a])
    {ParamOut: [v]} = tiny_sgd(Param: [v], Grad: [b])
    {ParamOut: [w]} = tiny_sgd(Param: [w], Grad: [a]))"),
              ElementsAre("a", "b", "v", "w"));
  EXPECT_THAT(OrderOf(R"(
    {Out: [a]} = tiny_copy(X: [x])
    {Out: [k]} = tiny_sum(X: [a])
    {Out: [b]} = after(X: [x], After: [k])
    {ParamOut: [v]} = tiny_sgd(Param: [v], Grad: [b])
    {ParamOut: [w]} = tiny_sgd(Param: [w], Grad: [a]))"),
              ElementsAre("a", "k", "w", "b", "v"));
}

TEST_F(OrderPassTest, PutsOffALargeValueUntilItIsRead) {
  EXPECT_THAT(OrderOf(R"(
    {Out: [a]} = tiny_copy(X: [x])
    {Out: [b]} = tiny_copy(X: [x])
    {Out: [c]} = tiny_copy(X: [b])
    {Out: [d]} = tiny_add(X: [c], Y: [a]))",
                      {"d"}),
              ElementsAre("b", "c", "a", "d"));
}

// What fetched values take can't be had before the end.
TEST_F(OrderPassTest, PutsOffWhatIsFetched) {
  EXPECT_THAT(OrderOf(R"(
    {Out: [a]} = tiny_copy(X: [x])
    {Out: [b]} = tiny_copy(X: [x])
    {Out: [c]} = tiny_copy(X: [b])
    {Out: [k]} = tiny_sum(X: [c]))",
                      {"a", "k"}),
              ElementsAre("b", "c", "a", "k"));
}

// That c and d take less than a and b is only true if d is c itself.
TEST_F(OrderPassTest, KnowsThatAViewTakesNothing) {
  const std::string ops = std::string(kTwoSums) + R"(
    {Out: [c]} = after(X: [x], After: [l])
    {Out: [d]} = view(X: [c])
    {Out: [m]} = sum_of(X: [d], After: [k])
    {Out: [n]} = sum_of(X: [c], After: [m]))";
  EXPECT_THAT(OrderOf(ops, {"n"}), ElementsAre("a", "k", "b", "l", "c", "d", "m", "n"));
  EXPECT_THAT(OrderOf(Replaced(ops, "view", "tiny_copy"), {"n"}),
              ElementsAre("a", "b", "k", "l", "c", "d", "m", "n"));
}

// d takes b's place, so that two at a time will do.
TEST_F(OrderPassTest, KnowsWhatIsComputedInPlace) {
  constexpr const char* kOps = R"(
    {Out: [a]} = tiny_copy(X: [x])
    {Out: [b]} = tiny_copy(X: [x])
    {Out: [c]} = tiny_scale(X: [a])
    {Out: [k]} = tiny_sum(X: [a])
    {Out: [d]} = tiny_add(X: [b], Y: [c]))";
  EXPECT_THAT(OrderOf(kOps, {"d", "k"}), ElementsAre("a", "c", "k", "b", "d"));
}

// What comes of a's shape doesn't wait for a.
TEST_F(OrderPassTest, PassesReadersOfShapes) {
  constexpr const char* kOps = R"(
    {Out: [a]} = tiny_copy(X: [x])
    {Out: [b]} = like(X: [a])
    {Out: [c]} = tiny_copy(X: [b])
    {Out: [k]} = tiny_sum(X: [c])
    {Out: [m]} = sum_of(X: [a], After: [k]))";
  EXPECT_THAT(OrderOf(kOps, {"m"}), ElementsAre("b", "c", "a", "k", "m"));
  EXPECT_THAT(OrderOf(Replaced(kOps, "like", "tiny_copy"), {"m"}),
              ElementsAre("a", "b", "c", "k", "m"));
}

// a and b needn't live at once, but c and d must, and take as much.
TEST_F(OrderPassTest, LeavesAPlanInWhichNothingIsGained) {
  const std::string ops = std::string(kTwoSums) + R"(
    {Out: [c]} = after(X: [x], After: [l])
    {Out: [d]} = tiny_copy(X: [c])
    {Out: [m]} = sum_of(X: [d], After: [k]))";
  const std::unique_ptr<Program> program = Parse(ops);
  Plan plan = Lower(*program, {"m"});
  const std::string before = PrintPlan(plan);
  EXPECT_EQ(OrderPass().Apply({.registry = registry_}, &plan).changes, 0);
  EXPECT_EQ(PrintPlan(plan), before);
}

TEST_F(OrderPassTest, SaysWhatItHasGained) {
  const std::unique_ptr<Program> program = Parse(kTwoSums);
  Plan plan = Lower(*program, {"k", "l"});
  const PassReport report = OrderPass().Apply({.registry = registry_}, &plan);
  EXPECT_EQ(report.changes, 1);
  EXPECT_EQ(report.summary, "1 instructions moved, 4104 bytes live at most instead of 8196");
}

TEST_F(OrderPassTest, LeavesPlansThatReuseNothing) {
  const std::unique_ptr<Program> program = Parse(kTwoSums);
  Plan plan = Lower(*program, {"k", "l"});
  const PassContext without_reuse = {.registry = registry_,
                                     .memory = {.policy = ReusePolicy::kNone}};
  EXPECT_EQ(OrderPass().Apply(without_reuse, &plan).changes, 0);
}

// d shares memory with nothing: it lives beside a and b just as beside c.
TEST_F(OrderPassTest, KnowsThatASkippedVariableLivesAllTheTime) {
  const std::unique_ptr<Program> program = Parse(std::string(kTwoSums) + R"(
    {Out: [c]} = after(X: [x], After: [l])
    {Out: [d]} = tiny_copy(X: [c])
    {Out: [m]} = sum_of(X: [d], After: [k])
    {Out: [n]} = sum_of(X: [c], After: [m]))");
  Plan plan = Lower(*program, {"n"});
  EXPECT_EQ(OrderPass().Apply({.registry = registry_}, &plan).changes, 0);
  MarkNamedValues({.skip = {"d"}}, &plan);
  EXPECT_EQ(OrderPass().Apply({.registry = registry_}, &plan).changes, 1);
  EXPECT_THAT(Outputs(plan), ElementsAre("a", "k", "b", "l", "c", "d", "m", "n"));
  // Nor does it gain anything by its own place.
  plan = Lower(*program, {"n"});
  MarkNamedValues({.skip = {"a", "d"}}, &plan);
  EXPECT_EQ(OrderPass().Apply({.registry = registry_}, &plan).changes, 0);
}

// ---- what nothing crosses; in each case less would live if something did

// In each of these, something that frees a would have to go before b is made.
constexpr const char* kFreedLate = R"(
    {Out: [a]} = tiny_copy(X: [x])
    {Out: [k]} = tiny_sum(X: [a])
    {Out: [b]} = after(X: [x], After: [k])
    {Out: [l]} = tiny_sum(X: [b])
)";

TEST_F(OrderPassTest, CrossesNoSideEffect) {
  const std::string ops = std::string(kFreedLate) + R"(
    {Out: [c]} = effect(X: [x])
    {ParamOut: [w]} = tiny_sgd(Param: [w], Grad: [a]))";
  EXPECT_THAT(OrderOf(ops), ElementsAre("a", "k", "b", "l", "c", "w"));
  EXPECT_THAT(OrderOf(Replaced(ops, "effect", "tiny_copy")),
              ElementsAre("a", "k", "w", "b", "l", "c"));
}

// b would have to go past the effect.
TEST_F(OrderPassTest, PutsNothingOffPastASideEffect) {
  constexpr const char* kOps = R"(
    {Out: [b]} = tiny_copy(X: [x])
    {Out: [k]} = effect(X: [z])
    {Out: [a]} = after(X: [x], After: [k])
    {Out: [l]} = tiny_sum(X: [a])
    {Out: [m]} = sum_of(X: [b], After: [l]))";
  EXPECT_THAT(OrderOf(kOps, {"m"}), ElementsAre("b", "k", "a", "l", "m"));
  EXPECT_THAT(OrderOf(Replaced(kOps, "effect", "tiny_copy"), {"m"}),
              ElementsAre("k", "a", "l", "b", "m"));
}

TEST_F(OrderPassTest, CrossesNoSubBlock) {
  const std::string ops = std::string(kFreedLate) + R"(
    {Out: [c]} = tiny_copy(X: [x])
    {ParamOut: [w]} = tiny_sgd(Param: [w], Grad: [a]))";
  const std::unique_ptr<Program> program = Parse(ops);
  Plan plan = Lower(*program, {});
  Op loop = *plan.instructions[4].op;
  loop.SetAttr("sub_block", BlockIndex{1});
  plan.instructions[4].op = &loop;
  EXPECT_EQ(OrderPass().Apply({.registry = registry_}, &plan).changes, 0);
  EXPECT_THAT(Outputs(plan), ElementsAre("a", "k", "b", "l", "c", "w"));
}

TEST_F(OrderPassTest, ReadsAVariableBeforeItIsWritten) {
  constexpr const char* kOps = R"(
    {Out: [a]} = tiny_copy(X: [x])
    {Out: [k]} = tiny_sum(X: [a])
    {Out: [b]} = after(X: [w], After: [k])
    {Out: [l]} = tiny_sum(X: [b])
    {ParamOut: [w]} = tiny_sgd(Param: [w], Grad: [a]))";
  EXPECT_THAT(OrderOf(kOps, {"l"}), ElementsAre("a", "k", "b", "l", "w"));
  EXPECT_THAT(OrderOf(Replaced(kOps, "after(X: [w]", "after(X: [v]"), {"l"}),
              ElementsAre("a", "k", "w", "b", "l"));
}

TEST_F(OrderPassTest, ReadsAVariableAfterItsWrite) {
  const std::string ops = std::string(kFreedLate) + R"(
    {Out: [z]} = tiny_copy(X: [l])
    {Out: [m]} = sum_of(X: [a], After: [z]))";
  EXPECT_THAT(OrderOf(ops, {"m"}), ElementsAre("a", "k", "b", "l", "z", "m"));
  EXPECT_THAT(OrderOf(Replaced(ops, "After: [z]", "After: [k]"), {"m"}),
              ElementsAre("a", "k", "m", "b", "l", "z"));
}

TEST_F(OrderPassTest, KeepsTheOrderOfWritesOfAVariable) {
  const std::string ops = std::string(kFreedLate) + R"(
    {Out: [w]} = after(X: [x], After: [l])
    {Out: [w]} = tiny_copy(X: [a]))";
  EXPECT_THAT(OrderOf(ops), ElementsAre("a", "k", "b", "l", "w", "w"));
  EXPECT_THAT(OrderOf(Replaced(ops, "{Out: [w]} = after", "{Out: [v]} = after")),
              ElementsAre("a", "k", "w", "b", "l", "v"));
}

// A step that fails leaves what it would have left: an update doesn't come before a check.
TEST_F(OrderPassTest, WritesNoVariableBeforeACheckThatCameFirst) {
  const std::string ops = std::string(kFreedLate) + R"(
    {Out: [m]} = check_sum(X: [b])
    {ParamOut: [w]} = tiny_sgd(Param: [w], Grad: [a]))";
  EXPECT_THAT(OrderOf(ops, {"m"}), ElementsAre("a", "k", "b", "l", "m", "w"));
  EXPECT_THAT(OrderOf(Replaced(ops, "check_sum", "tiny_sum"), {"m"}),
              ElementsAre("a", "k", "w", "b", "l", "m"));
}

TEST_F(OrderPassTest, ChecksNothingBeforeAWriteThatCameFirst) {
  const std::string ops = std::string(kFreedLate) + R"(
    {Out: [z]} = tiny_copy(X: [l])
    {Out: [m]} = check_sum(X: [a]))";
  EXPECT_THAT(OrderOf(ops, {"m"}), ElementsAre("a", "k", "b", "l", "z", "m"));
  EXPECT_THAT(OrderOf(Replaced(ops, "check_sum", "tiny_sum"), {"m"}),
              ElementsAre("a", "k", "m", "b", "l", "z"));
}

TEST_F(OrderPassTest, KeepsTheOrderOfChecks) {
  const std::string ops = std::string(kFreedLate) + R"(
    {Out: [n]} = check_sum(X: [x])
    {Out: [m]} = check_sum(X: [a]))";
  EXPECT_THAT(OrderOf(ops, {"m", "n"}), ElementsAre("a", "k", "n", "m", "b", "l"));
}

// ---- random programs

// Of ops on variables that are written again and again, in the scope and out of it.
class RandomOps {
 public:
  explicit RandomOps(uint32_t seed) : random_(seed) {}

  std::string Make(int ops) {
    std::string text;
    for (int i = 0; i < ops; ++i) text += NextOp();
    return text;
  }
  // Returns up to three of the variables that the program has written.
  std::vector<std::string> Fetches() {
    std::vector<std::string> all = large_;
    all.insert(all.end(), numbers_.begin(), numbers_.end());
    std::ranges::shuffle(all, random_);
    all.resize(std::min<size_t>(all.size(), random_() % 4));
    return all;
  }

 private:
  static void AddOnce(std::vector<std::string>* names, const std::string& name) {
    if (std::ranges::count(*names, name) == 0) names->push_back(name);
  }
  std::string OneOf(const std::vector<std::string>& names) {
    return names[random_() % names.size()];
  }
  std::string Call(const std::string& output, const std::string& call) {
    AddOnce(output < "k" || output == "v" || output == "w" ? &large_ : &numbers_, output);
    return "{Out: [" + output + "]} = " + call + "\n";
  }
  std::string NextOp() {
    const std::string x = "X: [" + OneOf(large_) + "]";
    const std::string y = "Y: [" + OneOf(large_) + "]";
    const std::string after = "After: [" + OneOf(numbers_) + "]";
    const std::string large = OneOf({"a", "b", "c", "d", "e", "f", "g", "h"});
    const std::string number = OneOf({"k", "l", "m", "n", "z"});
    const std::string param = OneOf({"v", "w"});
    switch (random_() % 15) {
      case 0:
        return Call(large, "tiny_add(" + x + ", " + y + ")");
      case 1:
        return Call(large, "tiny_scale(" + x + ") {factor = 0.5}");
      case 2:
        return Call(large, "view(" + x + ")");
      case 3:
        return Call(large, "like(" + x + ")");
      case 4:
        return Call(large, "tiny_random(" + x + ")");
      case 5:
        return Call(large, "tiny_workspace(" + x + ")");
      case 6:
      case 7:
        return Call(large, "after(" + x + ", " + after + ")");
      case 8:
        return Call(number, "tiny_sum(" + x + ")");
      case 9:
        return Call(number, "sum_of(" + x + ", " + after + ")");
      case 10:
        return Call(large, "tiny_check(" + x + ") {least = -9.0}");
      case 11:
        return Call(large, (random_() % 8 > 0 ? "tiny_copy(" : "effect(") + x + ")");
      case 12:
        return Call(large, "as(" + x + ", " + y + ")");
      case 13:
        return Call(param, "tiny_copy(" + x + ")");
      default:
        return "{ParamOut: [" + param + "]} = tiny_sgd(Param: [" + param + "], Grad" + x.substr(1) +
               ")\n";
    }
  }

  std::mt19937 random_;
  std::vector<std::string> large_ = {"x", "v", "w"};
  std::vector<std::string> numbers_ = {"z"};
};

// Returns a text of each instruction, sorted, so that positions don't matter.
std::vector<std::string> Sorted(const Plan& plan) {
  std::vector<std::string> all;
  for (const Instruction& i : plan.instructions) {
    all.push_back(
        StrCat(i.Name(), " ", i.op->id, " ", Join(i.inputs, ","), " ", Join(i.outputs, ",")));
  }
  std::ranges::sort(all);
  return all;
}

TEST_F(OrderPassTest, OnlyReordersRandomProgramsAndNeverTakesMore) {
  constexpr uint32_t kPrograms = 300;
  int64_t gained = 0;
  for (uint32_t seed = 0; seed < kPrograms; ++seed) {
    SCOPED_TRACE(seed);
    RandomOps ops(seed);
    const std::unique_ptr<Program> program = Parse(ops.Make(5 + static_cast<int>(seed % 40)));
    const std::vector<std::string> fetches = ops.Fetches();
    Plan plan = Lower(*program, fetches);
    const Plan before = plan;
    const PassReport report = OrderPass().Apply({.registry = registry_}, &plan);
    ASSERT_THAT(VerifyPlan(plan), IsEmpty());
    ASSERT_EQ(Sorted(plan), Sorted(before));
    const int64_t bytes_before = MostLiveBytesWithReuse({.registry = registry_}, before);
    const int64_t bytes = MostLiveBytesWithReuse({.registry = registry_}, plan);
    if (report.changes > 0) {
      ASSERT_LT(bytes, bytes_before);
      ++gained;
    } else {
      ASSERT_EQ(Outputs(plan), Outputs(before));
    }
    ExpectTheSameResults(*program, fetches);
    if (HasFailure()) return;
  }
  EXPECT_GT(gained, kPrograms / 4);
}

}  // namespace
}  // namespace skiff
