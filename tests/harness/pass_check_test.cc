// The check of passes finds the mistakes that it is there for: a pass that keeps its promise is
// accepted, and each of these wrong ones is reported.
#include "tests/harness/pass_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/momentum.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/variable_operators.h"
#include "framework/ir/op_role.h"

namespace skiff::harness {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// batch norm - fc - tanh - scaled residual - fc, trained by momentum; a step that fetches
// everything of interest, and steps that fetch little.
Workload SmallNetwork() {
  Workload workload;
  auto main = std::make_shared<Program>();
  auto startup = std::make_shared<Program>();
  FetchList gradients;
  std::string loss_name;
  {
    const ProgramGuard guard(main.get(), startup.get());
    const Variable x = layers::Data("x", {-1, 6});
    const Variable label = layers::Data("label", {-1, 1}, DType::kInt64);
    const Variable normed = layers::BatchNorm(x);
    const Variable hidden = layers::Fc(normed, 6, {.act = "tanh"});
    const Variable residual = layers::Tanh(hidden * 0.5 + normed) * hidden;
    const Variable logits = layers::Fc(residual, 3);
    const Variable loss = layers::Mean(layers::SoftmaxWithCrossEntropy(logits, label));
    loss_name = loss.name();
    for (const auto& pair : optimizer::Momentum({.learning_rate = 0.1}).Minimize(loss).trained) {
      gradients.push_back(pair.gradient->name);
    }
  }
  main->seed = startup->seed = 5;
  workload.name = "small_network";
  workload.startup = startup;
  workload.programs = {main};
  for (uint64_t i = 0; i < 4; ++i) {
    WorkloadRun run;
    run.feeds = {{"x", ToTensor(Uniform({5, 6}, i), DType::kFloat32)},
                 {"label", ToTensor(Integers({5, 1}, i, 0, 3), DType::kInt64)}};
    if (i != 1) run.fetches = {loss_name};
    if (i == 2) run.fetches.insert(run.fetches.end(), gradients.begin(), gradients.end());
    workload.runs.push_back(std::move(run));
  }
  return workload;
}

class RewritesProgram final : public ProgramPass {
 public:
  RewritesProgram(std::function<void(Program*)> rewrite, double tolerance)
      : rewrite_(std::move(rewrite)), tolerance_(tolerance) {}
  std::string_view name() const override { return "rewrites_program"; }
  double tolerance() const override { return tolerance_; }
  PassReport Apply(const ProgramPassContext&, Program* program) const override {
    rewrite_(program);
    return {};
  }

 private:
  std::function<void(Program*)> rewrite_;
  double tolerance_;
};

class RewritesPlan final : public PlanPass {
 public:
  explicit RewritesPlan(std::function<void(Plan*)> rewrite) : rewrite_(std::move(rewrite)) {}
  std::string_view name() const override { return "rewrites_plan"; }
  PassReport Apply(const PassContext&, Plan* plan) const override {
    rewrite_(plan);
    return {};
  }

 private:
  std::function<void(Plan*)> rewrite_;
};

std::vector<std::string> FaultsOf(const PassChoice& choice) {
  const Workload workload = SmallNetwork();
  return PassFaults(workload, RunWorkload(workload, NoPasses().options), choice);
}

std::vector<std::string> FaultsOfProgramPass(std::function<void(Program*)> rewrite,
                                             double tolerance = 0) {
  return FaultsOf(OnlyPass(std::make_shared<RewritesProgram>(std::move(rewrite), tolerance)));
}

std::vector<std::string> FaultsOfPlanPass(std::function<void(Plan*)> rewrite) {
  return FaultsOf(OnlyPass(std::make_shared<RewritesPlan>(std::move(rewrite))));
}

size_t PositionOf(const Block& block, const std::function<bool(const Op&)>& wanted) {
  for (size_t i = 0; i < block.ops().size(); ++i) {
    if (wanted(*block.ops()[i])) return i;
  }
  Throw(ErrorCode::kNotFound, "the program has no such op");
}

bool IsScale(const Op& op) { return op.type == "scale" && op.role() == kRoleForward; }

void DropScale(Program* program) {
  Block* block = program->root();
  const size_t position = PositionOf(*block, IsScale);
  const std::string from = block->ops()[position]->Output("Out")[0];
  const std::string to = block->ops()[position]->Input("X")[0];
  block->RemoveOps(position, position + 1);
  for (const auto& op : block->ops()) {
    for (SlotArguments& slot : op->inputs) std::ranges::replace(slot.arguments, from, to);
  }
}

void StretchScale(Program* program) {
  Op* op = program->root()->ops()[PositionOf(*program->root(), IsScale)].get();
  op->SetAttr("scale", op->Attr<float>("scale") * 1.00001f);
}

// As if nobody read the value after its first reader: other values get its space.
void FreeTooEarly(Plan* plan) {
  plan->reuse = ReusePolicy::kArena;
  for (const ValueId value : plan->ids()) {
    bool read = false;
    for (Instruction& instruction : plan->instructions) {
      for (size_t j = 0; j < instruction.inputs.size(); ++j) {
        if (instruction.inputs[j] != value) continue;
        if (read) instruction.reads_data[j] = false;
        read = true;
      }
    }
  }
}

// The output of the first reader of `batch_norm`'s result lies on that result, which is read again.
void ShareTooEarly(Plan* plan) {
  for (const Instruction& instruction : plan->instructions) {
    if (instruction.inputs.empty() || !instruction.inputs[0]) continue;
    const PlanValue& input = (*plan)[instruction.inputs[0]];
    PlanValue& output = (*plan)[instruction.outputs[0]];
    const bool normed = input.name.starts_with("batch_norm") && input.storage == Storage::kArena;
    if (!normed || !(input.meta.shape == output.meta.shape)) continue;
    output.alias_of = instruction.inputs[0];
    return;
  }
  Throw(ErrorCode::kNotFound, "the plan has no such instruction");
}

// As a dead_code pass that forgets the scope: moving statistics, parameters, velocities.
void DropWritesToTheScope(Plan* plan) {
  std::erase_if(plan->instructions, [](const Instruction& instruction) {
    return (instruction.op->role() & kRoleOptimize) != 0;
  });
}

TEST(PassCheck, AcceptsPassesThatChangeNothing) {
  EXPECT_THAT(FaultsOfProgramPass([](Program*) {}), IsEmpty());
  EXPECT_THAT(FaultsOfPlanPass([](Plan*) {}), IsEmpty());
  EXPECT_THAT(FaultsOfPlanPass([](Plan* plan) { plan->reuse = ReusePolicy::kArena; }), IsEmpty());
}

TEST(PassCheck, FindsAnOpThatIsDropped) {
  const auto faults = FaultsOfProgramPass(DropScale);
  EXPECT_THAT(faults, Contains(AllOf(HasSubstr("run 0: fetch "), HasSubstr("mean"))));
  EXPECT_THAT(faults, Contains(HasSubstr("run 0: in the scope fc_0.w_0:")));
}

TEST(PassCheck, FindsItWithToleranceToo) {
  const auto faults = FaultsOfProgramPass(DropScale, 1e-2);
  EXPECT_THAT(faults, Contains(AllOf(HasSubstr("run 2: fetch fc_0.w_0@GRAD: differs by"),
                                     HasSubstr("more than 0.01"))));
}

TEST(PassCheck, HoldsAPassToTheToleranceThatItDeclares) {
  EXPECT_THAT(FaultsOfProgramPass(StretchScale), Contains(HasSubstr("in the scope fc_0.w_0")));
  EXPECT_THAT(FaultsOfProgramPass(StretchScale, 1e-3), IsEmpty());
}

// A run whose largest gradient and velocity are of size 1, and two more variables.
RunTrace TraceOf(float gradient, float velocity, float activation) {
  const auto tensor = [](float value) { return ToTensor(Values({1}, {value}), DType::kFloat32); };
  RunTrace trace;
  trace.fetches = {tensor(1), tensor(gradient), tensor(activation)};
  trace.after = {{"fc_0.w_0_velocity_0", tensor(1)}, {"fc_0.b_0_velocity_0", tensor(velocity)}};
  return trace;
}

std::vector<std::string> DifferencesFrom(const RunTrace& expected, const RunTrace& found) {
  Workload workload = SmallNetwork();
  workload.runs = {{.fetches = {"fc_0.w_0@GRAD", "fc_0.b_0@GRAD", "fc_0.tmp_0"}}};
  return RunDifferences(workload, 0, expected, found, 1e-5);
}

// What is left of gradients that cancel is rounding.
TEST(PassCheck, AcceptsRoundingInGradientsThatCancel) {
  EXPECT_THAT(DifferencesFrom(TraceOf(4e-8f, -6e-8f, 1), TraceOf(-3e-8f, 2e-8f, 1)), IsEmpty());
}

TEST(PassCheck, FindsMoreThanRoundingInGradientsThatCancel) {
  const auto faults = DifferencesFrom(TraceOf(0, 0, 1), TraceOf(2e-7f, 3e-7f, 1));
  EXPECT_THAT(faults, ElementsAre(HasSubstr("fetch fc_0.b_0@GRAD: differs by"),
                                  HasSubstr("in the scope fc_0.b_0_velocity_0: differs by")));
}

// Only gradients are compared with each other.
TEST(PassCheck, HoldsOtherTensorsToTheirOwnSize) {
  EXPECT_THAT(DifferencesFrom(TraceOf(1, 1, 1e-3f), TraceOf(1, 1, 1.0001e-3f)),
              ElementsAre(HasSubstr("fetch fc_0.tmp_0: differs by")));
}

TEST(PassCheck, FindsStorageThatIsGivenAwayTooEarly) {
  EXPECT_THAT(FaultsOfPlanPass(FreeTooEarly), Contains(HasSubstr("in the scope fc_0.w_0")));
}

TEST(PassCheck, FindsAnInPlaceResultOverAValueThatIsReadAgain) {
  EXPECT_THAT(FaultsOfPlanPass(ShareTooEarly),
              Contains(HasSubstr("whose storage holds \"fc_0.tmp_0\"")));
}

TEST(PassCheck, FindsStatesThatAreNotWritten) {
  const auto faults = FaultsOfPlanPass(DropWritesToTheScope);
  EXPECT_THAT(faults, Contains(HasSubstr("run 0: in the scope fc_0.w_0_velocity_0")));
  EXPECT_THAT(faults, Contains(HasSubstr("run 1: in the scope fc_0.b_0")));
}

TEST(PassCheck, ReportsWhatAPassThrows) {
  EXPECT_THAT(
      FaultsOfProgramPass([](Program*) { Throw(ErrorCode::kUnimplemented, "no such block"); }),
      Contains(HasSubstr("threw: no such block")));
}

TEST(PassCheck, RunsTheVerifierOnWhatAPassMade) {
  EXPECT_THAT(FaultsOfProgramPass([](Program* program) {
                program->root()->ops()[0]->SetAttr("epsilon", std::string("small"));
              }),
              Contains(AllOf(HasSubstr("threw"), HasSubstr("epsilon"))));
}

TEST(PassCheck, ChoosesEveryRegisteredPass) {
  const std::vector<PassChoice> choices = PassChoices();
  const auto has = [&](const std::string& name) {
    return std::any_of(choices.begin(), choices.end(),
                       [&](const PassChoice& choice) { return choice.name == name; });
  };
  EXPECT_TRUE(has("default"));
  EXPECT_TRUE(has("optional"));
  EXPECT_TRUE(has("all"));
  std::vector<std::string> names = ProgramPassNames();
  for (const std::string& name : PlanPassNames()) names.push_back(name);
  for (const std::string& name : names) {
    EXPECT_TRUE(has("alone_" + name)) << name;
    EXPECT_TRUE(has("without_" + name) || has("with_" + name)) << name;
  }
}

}  // namespace
}  // namespace skiff::harness
