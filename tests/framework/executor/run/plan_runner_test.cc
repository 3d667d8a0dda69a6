// What a runner does for each instruction of a plan, whoever owns it.
#include "framework/executor/run/plan_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/steady_seconds.h"
#include "framework/executor/run/timed_body.h"
#include "framework/executor/storage/bound_values.h"
#include "framework/executor/storage/shared_arena.h"
#include "framework/executor/storage/storage.h"
#include "tests/framework/executor/lowered_plan.h"
#include "tests/harness/error_text.h"

namespace skiff::tiny {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// y = 4 x, and idle = 6 x.
class PlanRunnerTest : public LoweredPlanTest {
 protected:
  // Makes all that a runner needs, and returns the kernels.
  std::vector<PreparedKernel> Prepare(bool poisons = false) {
    environment_.emplace(
        KernelEnvironment{.registry = registry_, .scope = &scope_, .poisons = poisons});
    std::vector<PreparedKernel> kernels =
        PrepareKernels({.environment = *environment_, .forced = {}}, &plan_);
    PlanStorage(&plan_);
    current_ = plan_;
    arena_ = std::make_shared<SharedArena>(DeviceLink::Host());
    values_.emplace(plan_, &scope_, arena_);
    *values_->Of(plan_.feeds[0]) = Tensor::FromValues<float>({2}, {1, 2});
    return kernels;
  }

  PlanRunner::Inputs Inputs() {
    return {.plan = plan_,
            .environment = *environment_,
            .values = &*values_,
            .state = &state_,
            .current_plan = [this](size_t) -> const Plan& { return current_; }};
  }

  void Make(bool poisons) {
    std::vector<PreparedKernel> kernels = Prepare(poisons);
    runner_.emplace(Inputs(), std::move(kernels));
  }

  void Run(size_t i) {
    runner_->Run(i, [&] { runner_->kernel(i).Run(); });
  }

  void RunAll() {
    for (size_t i = 0; i < runner_->size(); ++i) Run(i);
  }

  std::vector<float> Fetched() const { return values_->Of(plan_.fetches[0])->ToVector<float>(); }

  Plan current_;  // with the current rows
  std::optional<KernelEnvironment> environment_;
  RunState state_;
  std::shared_ptr<SharedArena> arena_;
  std::optional<BoundValues> values_;
  std::optional<PlanRunner> runner_;
};

TEST_F(PlanRunnerTest, NeedsAKernelForEachInstruction) {
  std::vector<PreparedKernel> kernels = Prepare();
  kernels.pop_back();
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition,
                        [&] { runner_.emplace(Inputs(), std::move(kernels)); }),
              HasSubstr("a plan of 5 instructions and 4 prepared kernels"));
}

TEST_F(PlanRunnerTest, KnowsWhatReadsFeedsAndWritesVariables) {
  Make(/*poisons=*/false);
  for (size_t i = 0; i < runner_->size(); ++i) {
    EXPECT_EQ(runner_->ReadsFeed(i), i == 0) << i;
    EXPECT_EQ(runner_->WritesVariable(i), i == 2) << i;
  }
}

TEST_F(PlanRunnerTest, AdvancesTheVersionOfAVariableThatIsWritten) {
  Make(/*poisons=*/false);
  runner_->BindAllButFeedReaders();
  runner_->BindFeedReaders();
  const uint64_t before = *scope_.Version("w");
  Run(0);
  Run(1);
  EXPECT_EQ(*scope_.Version("w"), before);
  Run(2);
  EXPECT_EQ(*scope_.Version("w"), before + 1);
}

TEST_F(PlanRunnerTest, GivesAnErrorThePlaceOfTheOp) {
  Make(/*poisons=*/false);
  const std::string text = InvalidArgumentText(
      [&] { runner_->Run(1, [] { Throw(ErrorCode::kInvalidArgument, "refused"); }); });
  EXPECT_THAT(text, AllOf(HasSubstr("refused"), HasSubstr("tiny_copy")));
}

TEST_F(PlanRunnerTest, PoisonsMemoryThatIsDead) {
  Make(/*poisons=*/true);
  runner_->Bind();
  runner_->Poison();
  const auto is_nan = [](float x) { return std::isnan(x); };
  EXPECT_THAT(Fetched(), Each(::testing::Truly(is_nan)));
  RunAll();
  EXPECT_THAT(Fetched(), ElementsAre(4, 8));
  // b, which the last instruction has read.
  EXPECT_THAT(values_->Of(plan_.instructions[1].outputs[0])->ToVector<float>(),
              Each(::testing::Truly(is_nan)));
}

// As in a loop, where an instruction may run on the rows of many iterations at once.
TEST_F(PlanRunnerTest, ShowsAnInstructionTheValuesThatAreItsOwn) {
  std::vector<PreparedKernel> kernels = Prepare();
  BoundValues own(plan_, &scope_, std::make_shared<SharedArena>(DeviceLink::Host()));
  PlanRunner::Inputs inputs = Inputs();
  inputs.values_of = [&](size_t i) -> ValueTensors* {
    return i == 1 ? &own : static_cast<ValueTensors*>(&*values_);
  };
  runner_.emplace(inputs, std::move(kernels));
  runner_->Bind();
  const ValueId a = plan_.instructions[1].inputs[0];
  const ValueId b = plan_.instructions[1].outputs[0];
  *own.Of(a) = Tensor::FromValues<float>({2}, {5, 6});
  *values_->Of(b) = Tensor::FromValues<float>({2}, {0, 0});
  Run(0);
  Run(1);
  EXPECT_THAT(values_->Of(a)->ToVector<float>(), ElementsAre(2, 4));
  EXPECT_THAT(own.Of(b)->ToVector<float>(), ElementsAre(5, 6));
  EXPECT_THAT(values_->Of(b)->ToVector<float>(), ElementsAre(0, 0));
}

TEST_F(PlanRunnerTest, AddsUpTimesUntilItIsStopped) {
  Make(/*poisons=*/false);
  runner_->Bind();
  runner_->StartTiming(PlanRunner::Clock::kWaits);
  for (int run = 0; run < 2; ++run) {
    runner_->Time(1, [] {
      const double end = SteadySeconds() + 0.002;
      while (SteadySeconds() < end) continue;
    });
  }
  EXPECT_TRUE(runner_->is_timed());
  const std::vector<InstructionTime> times = runner_->StopTiming();
  EXPECT_FALSE(runner_->is_timed());
  ASSERT_EQ(times.size(), plan_.instructions.size());
  EXPECT_EQ(times[1].type, "tiny_copy");
  EXPECT_GE(times[1].seconds, 0.004);
  EXPECT_EQ(times[0].seconds, 0);
}

// A kernel with a body, as loops are.
class TimedKernel final : public Kernel, public TimedBody {
 public:
  explicit TimedKernel(bool* is_timed) : is_timed_(*is_timed) {}
  void Run(const KernelContext&) override {}
  void StartTiming() override { is_timed_ = true; }
  std::vector<InstructionTime> StopTiming() override {
    is_timed_ = false;
    return {};
  }

 private:
  bool& is_timed_;
};

TEST_F(PlanRunnerTest, AbandonsTimesOfARunThatFails) {
  std::vector<PreparedKernel> kernels = Prepare();
  bool is_body_timed = false;
  kernels[4].kernel = std::make_unique<TimedKernel>(&is_body_timed);
  runner_.emplace(Inputs(), std::move(kernels));
  runner_->Bind();
  runner_->StartTiming(PlanRunner::Clock::kEvents);
  EXPECT_TRUE(is_body_timed);
  Run(0);
  EXPECT_THROW(runner_->Run(1, [] { Throw(ErrorCode::kInvalidArgument, "refused"); }), Error);
  runner_->AbandonTiming();
  EXPECT_FALSE(runner_->is_timed());
  EXPECT_FALSE(is_body_timed);
  // Later times leave these out.
  runner_->StartTiming(PlanRunner::Clock::kWaits);
  for (const InstructionTime& time : runner_->StopTiming()) EXPECT_EQ(time.seconds, 0);
}

// y = x, of one or two rows, and last = w. The kernels that make y fix their rows.
class PlanRunnerRowsTest : public PlanRunnerTest {
 protected:
  PlanRunnerRowsTest() {
    AddProbe();
    program_ = ParseProgramText(R"(program { block 0 {
      var x float32 [2]
      var a float32 [2]
      var b float32 [2]
      var y float32 [2]
      var kept float32 [2]
      var last float32 [2]
      param w float32 [2] persistable
      {Out: [a]} = tiny_workspace(X: [x])
      {Out: [b]} = tiny_bound(X: [a])
      {Out: [y]} = probe(X: [b])
      {Out: [kept]} = tiny_workspace(X: [w])
      {Out: [last]} = tiny_bound(X: [kept])
    } })");
    const TensorMeta fed{.shape = {2}};
    plan_ = LowerProgram({.registry = registry_, .scope = scope_, .place = Place::Cpu()}, *program_,
                         {{"x", fed}}, {"y", "last"});
    std::vector<PreparedKernel> kernels = Prepare();
    PlanRunner::Inputs inputs = Inputs();
    inputs.varies = [](const Instruction& instruction) { return instruction.position < 3; };
    runner_.emplace(inputs, std::move(kernels));
    runner_->Bind();
  }

  // Adds an op that copies X and notes what its kernels know.
  void AddProbe() {
    OpDef def;
    def.type = "probe";
    def.doc = "Out = X.";
    def.inputs = {{.name = "X", .doc = "an operand"}};
    def.outputs = {{.name = "Out", .doc = "the result"}};
    def.infer = [](OpContext& context) { context.SetOutputLike("Out", "X"); };
    def.no_gradient_reason = "tests of the executor need none";
    registry_.Add(std::move(def));
    registry_.AddKernel("probe", {.prepare = [this](PrepareContext& context) {
                          prepared_rows_.push_back(context.Input("X").shape[0]);
                          return MakeKernel([this](const KernelContext& kernel) {
                            fault_ = kernel.fault;
                            CopyTensor(kernel.input(0), &kernel.output(0));
                          });
                        }});
  }

  // Feeds these rows and makes all other values fit.
  void Feed(const std::vector<float>& rows) {
    const auto count = static_cast<int64_t>(rows.size());
    for (size_t i = 0; i < 3; ++i) {
      const ValueId output = plan_.instructions[i].outputs[0];
      current_[output].meta.shape = {count};
      values_->Of(output)->SetRows(count);
    }
    current_[plan_.feeds[0]].meta.shape = {count};
    *values_->Of(plan_.feeds[0]) = Tensor::FromValues<float>({count}, rows);
    runner_->ChooseKernels();
    runner_->BindFeedReaders();
  }

  std::vector<float> Last() const { return values_->Of(plan_.fetches[1])->ToVector<float>(); }

  // Returns what lies in the workspace of an instruction, as the plan places it.
  std::vector<float> InWorkspace(size_t i) const {
    const int64_t offset = plan_.instructions[i].workspace_offsets[0];
    const auto* workspace = static_cast<const float*>(values_->InArena(Place::Cpu(), offset));
    return {workspace, workspace + 2};
  }

  // Moves the arena to memory full of zeros.
  void MoveArena() {
    arena_->Reserve(Place::Cpu(), plan_.planned_bytes + 4096);
    const Buffer& memory = *arena_->memory(Place::Cpu());
    std::memset(memory.data(), 0, static_cast<size_t>(memory.bytes()));
    EXPECT_TRUE(values_->FollowArena());
    runner_->FollowArena();
    runner_->Bind();
  }

  std::vector<int64_t> prepared_rows_;  // by kernel of the probe
  uint64_t* fault_ = nullptr;           // KernelContext::fault in its last run
};

TEST_F(PlanRunnerRowsTest, PreparesAKernelForOtherRowsOnce) {
  const BoundKernel* planned = &runner_->kernel(1);
  Feed({1, 2});
  const BoundKernel* for_two = &runner_->kernel(1);
  EXPECT_NE(for_two, planned);
  EXPECT_EQ(runner_->TakePreparations().kernels, 3);
  runner_->ChooseKernels();
  EXPECT_EQ(runner_->TakePreparations().kernels, 0);
  RunAll();
  EXPECT_THAT(Fetched(), ElementsAre(1, 2));
  Feed({3});
  EXPECT_NE(&runner_->kernel(1), for_two);
  EXPECT_NE(&runner_->kernel(1), planned);
  EXPECT_EQ(runner_->TakePreparations().kernels, 3);
  EXPECT_THAT(prepared_rows_, ElementsAre(2, 2, 1));
  RunAll();
  EXPECT_THAT(Fetched(), ElementsAre(3));
  Feed({4, 5});
  EXPECT_EQ(&runner_->kernel(1), for_two);
  EXPECT_EQ(runner_->TakePreparations().kernels, 0);
  RunAll();
  EXPECT_THAT(Fetched(), ElementsAre(4, 5));
}

// With kernels for the planned rows, for other rows, and for other rows in an earlier run.
TEST_F(PlanRunnerRowsTest, FollowsTheArena) {
  Feed({1, 2});
  Feed({3});
  runner_->TakePreparations();
  RunAll();
  EXPECT_THAT(Fetched(), ElementsAre(3));
  EXPECT_THAT(Last(), ElementsAre(1, 2));
  MoveArena();
  RunAll();
  EXPECT_THAT(Fetched(), ElementsAre(3));
  EXPECT_THAT(Last(), ElementsAre(1, 2));
  EXPECT_THAT(InWorkspace(0), ElementsAre(3, 0));
  EXPECT_THAT(InWorkspace(3), ElementsAre(1, 2));
  Feed({4, 5});
  RunAll();
  EXPECT_EQ(runner_->TakePreparations().kernels, 0);
  EXPECT_THAT(Fetched(), ElementsAre(4, 5));
  EXPECT_THAT(InWorkspace(0), ElementsAre(4, 5));
}

TEST_F(PlanRunnerRowsTest, TellsAllKernelsOfAnInstructionWhereFaultsGo) {
  uint64_t fault = 0;
  const auto told = [&] {
    fault_ = nullptr;
    RunAll();
    return fault_;
  };
  runner_->SetFault(2, &fault);
  EXPECT_EQ(told(), &fault) << "the planned kernel";
  Feed({1, 2});
  EXPECT_EQ(told(), &fault) << "a kernel prepared after SetFault";
  uint64_t other = 0;
  Feed({3});
  runner_->SetFault(2, &other);
  EXPECT_EQ(told(), &other) << "the kernel of now, prepared before SetFault";
  Feed({4, 5});
  EXPECT_EQ(told(), &other) << "a kernel of an earlier run, prepared before SetFault";
}

}  // namespace
}  // namespace skiff::tiny
