// Programs on a device: here an emulated one, which finds a host that doesn't wait or touches the
// device's memory. Models and random programs run on it in tests/models and every_pass_test.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/analysis/ops_on_host.h"
#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "framework/ir/text.h"
#include "memory/places.h"
#include "tests/framework/executor/tiny_ops.h"
#include "tests/harness/emulated_device.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using harness::EmulatedPlace;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr const char* kPlain = R"(program { block 0 {
  var "x" float32 [-1, 2]
  var "y" float32 [-1, 2]
  var "s" float32 [1]
  param "w" float32 [2, 2] persistable
  {Out: ["y"]} = tiny_add(X: ["x"], Y: ["w"])
  {Out: ["s"]} = tiny_sum(X: ["y"])
} })";

// An op in the middle refuses negative elements of x: after an update of a statistic, before that
// of w.
constexpr const char* kTraining = R"(program seed=9 { block 0 {
  var "x" float32 [3]
  var "seen" float32 [3] persistable
  param "w" float32 [3] persistable
  var "checked" float32 [3]
  {Out: ["seen"]} = tiny_add(X: ["seen"], Y: ["x"])
  {Out: ["checked"]} = tiny_check(X: ["x"])
  {ParamOut: ["w"]} = tiny_sgd(Param: ["w"], Grad: ["checked"]) {op_role = 2}
} })";

// Random numbers, data that may be refused, and an update; the host takes part before the update.
constexpr const char* kLongTraining = R"(program seed=9 { block 0 {
  var "x" float32 [3]
  var "seen" float32 [3] persistable
  param "w" float32 [3] persistable
  var "noise" float32 [3]
  var "noisy" float32 [3]
  var "checked" float32 [3]
  var "twice" float32 [3]
  var "sum" float32 [1]
  {Out: ["seen"]} = tiny_add(X: ["seen"], Y: ["x"])
  {Out: ["noise"]} = tiny_random(X: ["x"])
  {Out: ["noisy"]} = tiny_add(X: ["noise"], Y: ["seen"])
  {Out: ["checked"]} = tiny_check(X: ["x"])
  {Out: ["noisy"]} = tiny_add(X: ["noisy"], Y: ["checked"])
  {Out: ["twice"]} = tiny_scale(X: ["noisy"]) {factor = 2.0}
  {Out: ["noisy"]} = tiny_add(X: ["noisy"], Y: ["twice"])
  {Out: ["sum"]} = tiny_sum(X: ["noisy"])
  {ParamOut: ["w"]} = tiny_sgd(Param: ["w"], Grad: ["noisy"]) {op_role = 2}
} })";

Tensor Row(const std::vector<float>& values) {
  return Tensor::FromValues<float>({static_cast<int64_t>(values.size())}, values);
}

class OnDevice : public ::testing::Test {
 protected:
  OnDevice() { tiny::RegisterTinyOps(tiny_ops_); }

  // An executor on a device that has no kernels for the ops of the type `missing`.
  std::unique_ptr<Executor> MakeExecutor(const std::string& missing = "") {
    registries_.push_back(harness::RegistryWithEmulation(
        tiny_ops_, [=](const OpDef& def) { return def.type == missing; }));
    auto executor = std::make_unique<Executor>(EmulatedPlace(), nullptr, registries_.back().get());
    executor->scope().Set("seen", Row({0, 0, 0}));
    return executor;
  }

  // A step of kLongTraining for each x. Returns the sums, then w, and what was seen.
  std::vector<std::vector<float>> Trained(const CompileOptions& options,
                                          const std::vector<float>& xs, int64_t* graphs) {
    const auto executor = MakeExecutor();
    executor->scope().Set("w", Row({1, 2, 3}));
    CompiledProgram program = executor->Compile(*ParseProgramText(kLongTraining), options);
    Tensor x = Row({0, 0, 0});
    BoundProgram bound = program.Bind({{"x", x}}, {"sum"});
    std::vector<float> sums;
    for (const float value : xs) {
      std::ranges::fill(x.values<float>(), value);
      try {
        bound.Step();
        sums.push_back(bound.fetch(0).Item<float>());
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("tiny_check (block 0, op #3)"));
        sums.push_back(-1);
      }
    }
    *graphs = bound.statistics().graphs;
    return {sums, Held(*executor, "w"), Held(*executor, "seen")};
  }

  static std::vector<float> Held(const Executor& executor, const std::string& name) {
    return CopyToCpu(executor.scope().Get(name)).ToVector<float>();
  }

  OpRegistry tiny_ops_;
  std::vector<std::unique_ptr<OpRegistry>> registries_;
  const Tensor matrix_ = Tensor::FromValues<float>({2, 2}, {1, 2, 3, 4});
};

TEST_F(OnDevice, UpdatesAreFusedByDefault) {
  const auto passes = [](Executor* executor, const PipelineOptions& options) {
    std::vector<std::string> names;
    const CompiledProgram compiled =
        executor->Compile(*ParseProgramText(kTraining), {.passes = options});
    for (const PassReport& report : compiled.reports()) names.push_back(report.pass);
    return names;
  };
  const auto on_device = MakeExecutor();
  EXPECT_THAT(passes(on_device.get(), {}),
              ElementsAre("fuse_optimizer", "merge_optimizer", "early_update"));
  EXPECT_THAT(passes(on_device.get(), {.skip = {"fuse_optimizer"}}), ElementsAre("early_update"));
  Executor on_cpu(Place::Cpu(), nullptr, &tiny_ops_);
  EXPECT_THAT(passes(&on_cpu, {}), ElementsAre("early_update"));
}

TEST_F(OnDevice, VariablesFollowTheProgramAndFetchesComeToTheCpu) {
  const auto executor = MakeExecutor();
  executor->scope().Set("w", matrix_);
  CompiledProgram program = executor->Compile(*ParseProgramText(kPlain));
  const std::vector<Tensor> fetches = program.Run({{"x", matrix_}}, {"y", "s"});
  EXPECT_EQ(fetches[0].place(), Place::Cpu());
  EXPECT_THAT(fetches[0].ToVector<float>(), ElementsAre(2, 4, 6, 8));
  EXPECT_EQ(fetches[1].Item<float>(), 20);
  EXPECT_EQ(executor->scope().Get("w").place(), EmulatedPlace());
  // As a loaded file would be.
  executor->scope().Set("w", Tensor::FromValues<float>({2, 2}, {0, 0, 0, 1}));
  EXPECT_EQ(program.Run({{"x", matrix_}}, {"s"})[0].Item<float>(), 11);
  EXPECT_EQ(executor->scope().Get("w").place(), EmulatedPlace());

  Executor on_cpu(Place::Cpu(), &executor->scope(), &tiny_ops_);
  CompiledProgram same = on_cpu.Compile(*ParseProgramText(kPlain));
  EXPECT_EQ(same.Run({{"x", matrix_}}, {"s"})[0].Item<float>(), 11);
  EXPECT_EQ(executor->scope().Get("w").place(), Place::Cpu());
}

TEST_F(OnDevice, VariablesThatShareABufferMoveTogether) {
  const auto executor = MakeExecutor();
  const auto buffer = std::make_shared<Buffer>(AllocatorOf(Place::Cpu()), 24);
  Tensor w({3}, DType::kFloat32, buffer, 12);
  Tensor seen({3}, DType::kFloat32, buffer, 0);
  CopyTensor(Row({1, 2, 3}), &w);
  CopyTensor(Row({0, 0, 0}), &seen);
  executor->scope().Set("w", w);
  executor->scope().Set("seen", seen);
  executor->Compile(*ParseProgramText(kTraining)).Run({{"x", Row({1, 1, 1})}}, {});
  EXPECT_EQ(executor->scope().Get("w").buffer(), executor->scope().Get("seen").buffer());
  EXPECT_EQ(executor->scope().Get("w").offset_bytes(), 12);
  EXPECT_THAT(Held(*executor, "w"), ElementsAre(0, 1, 2));
  EXPECT_THAT(Held(*executor, "seen"), ElementsAre(1, 1, 1));
}

// The rest of the buffer isn't wanted there.
TEST_F(OnDevice, AVariableOfABufferOfWhichAnotherStaysMovesAlone) {
  const auto executor = MakeExecutor();
  const auto buffer = std::make_shared<Buffer>(AllocatorOf(Place::Cpu()), 4096);
  Tensor w({3}, DType::kFloat32, buffer, 12);
  CopyTensor(Row({1, 2, 3}), &w);
  executor->scope().Set("w", w);
  executor->scope().Set("other", Tensor({3}, DType::kFloat32, buffer, 24));
  executor->Compile(*ParseProgramText(kTraining)).Run({{"x", Row({1, 1, 1})}}, {});
  EXPECT_THAT(Held(*executor, "w"), ElementsAre(0, 1, 2));
  EXPECT_EQ(executor->scope().Get("w").buffer()->bytes(), 12);
  EXPECT_EQ(executor->scope().Get("other").place(), Place::Cpu());
}

TEST_F(OnDevice, StepsReadTheFeedsAsTheyAreThen) {
  const auto executor = MakeExecutor();
  executor->scope().Set("w", matrix_);
  CompiledProgram program = executor->Compile(*ParseProgramText(kPlain));
  Tensor x = CopyToCpu(matrix_);
  BoundProgram bound = program.Bind({{"x", x}}, {"s"});
  for (const float first : {1.0f, 2.0f, 3.0f}) {
    x.data<float>()[0] = first;
    bound.Step();
    EXPECT_EQ(bound.fetch(0).Item<float>(), 19 + first);
  }
}

// Nothing in it lets the host wait: no data are checked, and all runs on the device.
constexpr const char* kUnchecked = R"(program { block 0 {
  var "x" float32 [3]
  param "w" float32 [3] persistable
  var "twice" float32 [3]
  {Out: ["twice"]} = tiny_scale(X: ["x"]) {factor = 2.0}
  {ParamOut: ["w"]} = tiny_sgd(Param: ["w"], Grad: ["twice"]) {op_role = 2}
} })";

class StepsInTheBackground : public OnDevice {
 protected:
  StepsInTheBackground() {
    executor_->scope().Set("w", Row({1, 2, 3}));
    bound_.emplace(executor_->Compile(*ParseProgramText(kUnchecked)).Bind({{"x", x_}}, {"twice"}));
  }

  void StepWith(float value) {
    std::ranges::fill(x_.values<float>(), value);
    bound_->Step();
  }

  const std::unique_ptr<Executor> executor_ = MakeExecutor();
  Tensor x_ = Row({0, 0, 0});
  std::optional<BoundProgram> bound_;
};

TEST_F(StepsInTheBackground, EachHasTheFeedsOfItsTime) {
  StepWith(1);
  const Tensor& fetch = bound_->fetch(0);
  EXPECT_THAT(fetch.ToVector<float>(), ElementsAre(2, 2, 2));
  // More steps than there are buffers for feeds.
  for (const float value : {2.0f, 3.0f, 4.0f, 5.0f}) StepWith(value);
  std::ranges::fill(x_.values<float>(), 100.0f);
  // The device runs as late as it may: not all of these steps are over.
  EXPECT_LT(fetch.data<float>()[0], 10);
  EXPECT_THAT(bound_->fetch(0).ToVector<float>(), ElementsAre(10, 10, 10));
  EXPECT_THAT(Held(*executor_, "w"), ElementsAre(1 - 30, 2 - 30, 3 - 30));
}

TEST_F(StepsInTheBackground, TheScopeWaitsBeforeATensorGoesAway) {
  StepWith(1);
  const float* fetched = bound_->fetch(0).data<float>();
  StepWith(2);
  EXPECT_EQ(*fetched, 2);
  executor_->scope().Set("w", Row({10, 10, 10}));
  EXPECT_EQ(*fetched, 4) << "the device still works on the old tensor";
  EXPECT_FALSE(bound_->is_current());
  EXPECT_THAT(Held(*executor_, "w"), ElementsAre(10, 10, 10));
}

TEST_F(StepsInTheBackground, AnotherExecutorWaits) {
  const auto program = ParseProgramText(R"(program { block 0 {
    var "x" float32 [3]
    param "w" float32 [3] persistable
    var "y" float32 [3]
    var "sum" float32 [1]
    {Out: ["y"]} = tiny_add(X: ["x"], Y: ["w"])
    {Out: ["sum"]} = tiny_sum(X: ["y"])
  } })");
  Executor other(EmulatedPlace(), &executor_->scope(), registries_.back().get());
  BoundProgram reader = other.Compile(*program).Bind({{"x", Row({0, 0, 0})}}, {"sum"});
  // All is there before the steps, so that nothing but the reader's own step can wait for them.
  StepWith(1);
  reader.Step();
  EXPECT_EQ(reader.fetch(0).Item<float>(), 0);
  StepWith(1);
  reader.Step();
  EXPECT_EQ(reader.fetch(0).Item<float>(), -6);
}

TEST_F(OnDevice, StepsWithAnOpOnTheCpuNeedNoFetchInBetween) {
  const auto executor = MakeExecutor("tiny_copy");
  executor->scope().Set("w", Row({1, 2, 3}));
  executor->scope().Set("copy", Row({0, 0, 0}));
  CompiledProgram program = executor->Compile(*ParseProgramText(R"(program { block 0 {
    var "x" float32 [3]
    param "w" float32 [3] persistable
    var "copy" float32 [3] persistable
    var "sum" float32 [1]
    {ParamOut: ["w"]} = tiny_sgd(Param: ["w"], Grad: ["x"]) {op_role = 2}
    {Out: ["copy"]} = tiny_copy(X: ["w"])
    {Out: ["sum"]} = tiny_sum(X: ["copy"])
  } })"));
  BoundProgram bound = program.Bind({{"x", Row({1, 1, 1})}}, {"sum"});
  for (const float sum : {0.0f, -6.0f, -12.0f}) {
    bound.Step();
    bound.Step();
    EXPECT_EQ(bound.fetch(0).Item<float>(), sum);
  }
}

TEST_F(StepsInTheBackground, AFetchThatTheCallerKeepsIsThatOfTheLastStep) {
  StepWith(1);
  Tensor kept = bound_->fetch(0);
  StepWith(2);
  bound_.reset();  // waits
  EXPECT_THAT(kept.ToVector<float>(), ElementsAre(4, 4, 4));
}

TEST_F(OnDevice, AnOpWithoutAKernelRunsOnTheCpu) {
  for (const std::string missing : {"tiny_add", "tiny_sum"}) {
    const auto executor = MakeExecutor(missing);
    executor->scope().Set("w", matrix_);
    CompiledProgram program = executor->Compile(*ParseProgramText(kPlain));
    BoundProgram bound = program.Bind({{"x", matrix_}}, {"y", "s"});
    // Twice: the arena on the CPU is used again.
    for (int i = 0; i < 2; ++i) {
      bound.Step();
      EXPECT_THAT(bound.fetch(0).ToVector<float>(), ElementsAre(2, 4, 6, 8));
      EXPECT_EQ(bound.fetch(1).Item<float>(), 20);
    }
    EXPECT_THAT(OpsOnHost(bound.plan()), ElementsAre(Pair(missing, 1)));
    // tiny_add reads w and its result goes to tiny_sum; or x comes, and y goes.
    EXPECT_EQ(bound.statistics().transfers, 2);
    EXPECT_EQ(bound.statistics().layout_copies, 0);
  }
  const auto executor = MakeExecutor();
  executor->scope().Set("w", matrix_);
  CompiledProgram program = executor->Compile(*ParseProgramText(kPlain));
  EXPECT_THAT(OpsOnHost(program.Bind({{"x", matrix_}}, {"s"}).plan()), IsEmpty());
}

TEST_F(OnDevice, AnUpdateOnTheCpuReachesTheVariableOnTheDevice) {
  const auto executor = MakeExecutor("tiny_sgd");
  executor->scope().Set("w", Row({1, 2, 3}));
  CompiledProgram program = executor->Compile(*ParseProgramText(kTraining));
  for (int i = 0; i < 2; ++i) program.Run({{"x", Row({1, 1, 1})}}, {});
  EXPECT_EQ(executor->scope().Get("w").place(), EmulatedPlace());
  EXPECT_THAT(Held(*executor, "w"), ElementsAre(-1, 0, 1));
  EXPECT_THAT(Held(*executor, "seen"), ElementsAre(2, 2, 2));
}

TEST_F(OnDevice, RefusedDataLeaveTheScopeAsItWas) {
  // Refused on the device; on the CPU, while the device works.
  for (const std::string missing : {"", "tiny_check", "tiny_add"}) {
    const auto executor = MakeExecutor(missing);
    executor->scope().Set("w", Row({1, 2, 3}));
    CompiledProgram program = executor->Compile(*ParseProgramText(kTraining));
    program.Run({{"x", Row({1, 1, 1})}}, {});
    EXPECT_THAT(ErrorText([&] {
                  program.Run({{"x", Row({1, -1, 1})}}, {});
                }),
                HasSubstr("tiny_check (block 0, op #1)"));
    EXPECT_THAT(Held(*executor, "w"), ElementsAre(0, 1, 2)) << "without " << missing;
    EXPECT_THAT(Held(*executor, "seen"), ElementsAre(1, 1, 1));
    program.Run({{"x", Row({1, 1, 1})}}, {});
    EXPECT_THAT(Held(*executor, "w"), ElementsAre(-1, 0, 1));
    EXPECT_THAT(Held(*executor, "seen"), ElementsAre(2, 2, 2));
  }
}

TEST_F(OnDevice, PlansShareTheArenas) {
  const auto executor = MakeExecutor("tiny_sum");
  executor->scope().Set("w", Tensor::FromValues<float>({1}, {1}));
  CompiledProgram program = executor->Compile(*ParseProgramText(R"(program { block 0 {
    var "x" float32 [-1]
    var "y" float32 [-1]
    var "s" float32 [1]
    {Out: ["y"]} = tiny_scale(X: ["x"]) {factor = 2.0}
    {Out: ["s"]} = tiny_sum(X: ["y"])
  } })"));
  for (const int64_t count : {3, 5000, 4, 9000, 3}) {
    const Tensor ones =
        Tensor::FromValues<float>({count}, std::vector<float>(static_cast<size_t>(count), 1.0f));
    EXPECT_EQ(program.Run({{"x", ones}}, {"s"})[0].Item<float>(), 2.0f * static_cast<float>(count));
  }
}

TEST_F(OnDevice, GraphsHaveTheBitsOfPlainRuns) {
  // -1 is refused: in the first run, in a graph, and in a run after that.
  for (const std::vector<float>& xs :
       {std::vector<float>{1, 2, 3, 4, 5}, {-1, 1, 2, 3}, {1, 2, 3, -1, 4, 5}}) {
    int64_t graphs = 0;
    const auto plain = Trained({.graphs = false}, xs, &graphs);
    EXPECT_EQ(graphs, 0);
    EXPECT_EQ(Trained({}, xs, &graphs), plain);
    EXPECT_EQ(graphs, 1);
    // Each step draws other numbers.
    EXPECT_NE(plain[0][2], plain[0][3]);
  }
}

// Kernels take LoDs from the host, and those of a batch may differ from the last batch's.
TEST_F(OnDevice, RaggedFeedsMakeNoGraphs) {
  const auto executor = MakeExecutor();
  CompiledProgram program = executor->Compile(*ParseProgramText(R"(program { block 0 {
    var "x" float32 [-1, 1] lod=1
    var "a" float32 [-1, 1] lod=1
    var "s" float32 [1]
    {Out: ["a"]} = tiny_copy(X: ["x"])
    {Out: ["a"]} = tiny_scale(X: ["a"]) {factor = 2.0}
    {Out: ["a"]} = tiny_scale(X: ["a"]) {factor = 2.0}
    {Out: ["s"]} = tiny_sum(X: ["a"])
  } })"),
                                              {.exact_rows = true});
  Tensor x = Tensor::FromValues<float>({3, 1}, {1, 2, 3});
  x.set_lod({{0, 1, 3}});
  BoundProgram bound = program.Bind({{"x", x}}, {"s"});
  for (int i = 0; i < 3; ++i) bound.Step();
  EXPECT_EQ(bound.fetch(0).Item<float>(), 24);
  EXPECT_EQ(bound.statistics().graphs, 0);
}

TEST_F(OnDevice, AKernelThatWaitsMakesNoGraph) {
  constexpr const char* kWaiting = R"(program { block 0 {
    var "x" float32 [3]
    var "seen" float32 [3] persistable
    var "a" float32 [3]
    {Out: ["seen"]} = tiny_add(X: ["seen"], Y: ["x"])
    {Out: ["a"]} = tiny_copy(X: ["seen"])
    {Out: ["a"]} = tiny_wait(X: ["a"])
    {Out: ["a"]} = tiny_copy(X: ["a"])
  } })";
  OpDef def = tiny_ops_.Get("tiny_copy");
  def.type = "tiny_wait";
  tiny_ops_.Add(def);
  const auto executor = MakeExecutor();
  registries_.back()->AddKernel("tiny_wait",
                                {.place = PlaceKind::kCuda, .prepare = [](PrepareContext&) {
                                   return MakeKernel([](const KernelContext& run) {
                                     Tensor copy({3}, DType::kFloat32);
                                     DeviceOf(EmulatedPlace())
                                         .CopyNow(copy.raw_data(), Place::Cpu(),
                                                  run.input(0).raw_data(), EmulatedPlace(), 12);
                                     DeviceOf(EmulatedPlace())
                                         .CopyNow(run.output(0).raw_data(), EmulatedPlace(),
                                                  copy.raw_data(), Place::Cpu(), 12);
                                   });
                                 }});
  CompiledProgram program = executor->Compile(*ParseProgramText(kWaiting));
  const FeedList feeds = {{"x", Row({1, 2, 3})}};
  EXPECT_THAT(program.Run(feeds, {"a"})[0].ToVector<float>(), ElementsAre(1, 2, 3));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(ErrorText([&] { program.Run(feeds, {"a"}); }),
                AllOf(HasSubstr("tiny_wait (block 0, op #2)"), HasSubstr("captured"),
                      HasSubstr("CompileOptions::graphs = false")));
    EXPECT_THAT(Held(*executor, "seen"), ElementsAre(1, 2, 3));
  }
  CompiledProgram plain = executor->Compile(*ParseProgramText(kWaiting), {.graphs = false});
  EXPECT_THAT(plain.Run(feeds, {"a"})[0].ToVector<float>(), ElementsAre(2, 4, 6));
}

TEST_F(OnDevice, GraphsFollowTheArena) {
  constexpr const char* kChain = R"(program { block 0 {
    var "x" float32 [-1]
    var "a" float32 [-1]
    var "b" float32 [-1]
    var "s" float32 [1]
    {Out: ["a"]} = tiny_scale(X: ["x"]) {factor = 2.0}
    {Out: ["b"]} = tiny_copy(X: ["a"])
    {Out: ["a"]} = tiny_add(X: ["b"], Y: ["a"])
    {Out: ["b"]} = tiny_copy(X: ["a"])
    {Out: ["s"]} = tiny_sum(X: ["b"])
  } })";
  const auto executor = MakeExecutor();
  CompiledProgram program = executor->Compile(*ParseProgramText(kChain));
  const auto ones = [](int64_t count) {
    return Tensor::FromValues<float>({count}, std::vector<float>(static_cast<size_t>(count), 1.0f));
  };
  BoundProgram few = program.Bind({{"x", ones(3)}}, {"s"});
  for (int i = 0; i < 3; ++i) few.Step();
  EXPECT_EQ(few.statistics().graphs, 1);
  // It takes more memory, and so another arena.
  BoundProgram many = program.Bind({{"x", ones(9000)}}, {"s"});
  for (int i = 0; i < 3; ++i) {
    many.Step();
    EXPECT_EQ(many.fetch(0).Item<float>(), 36000);
    few.Step();
    EXPECT_EQ(few.fetch(0).Item<float>(), 12);
    EXPECT_EQ(few.statistics().graphs, i == 0 ? 0 : 1);
  }
}

TEST_F(OnDevice, StepsAreTimedByTheDevice) {
  const auto executor = MakeExecutor("tiny_sum");
  executor->scope().Set("w", matrix_);
  CompiledProgram program = executor->Compile(*ParseProgramText(kPlain));
  BoundProgram bound = program.Bind({{"x", matrix_}}, {"s"});
  std::map<std::string, double> seconds;
  for (const InstructionTime& time : bound.TimedStep()) seconds[time.type] += time.seconds;
  EXPECT_EQ(bound.fetch(0).Item<float>(), 20);
  for (const char* type : {"tiny_add", "tiny_sum", "copy"}) EXPECT_GT(seconds[type], 0) << type;
}

TEST_F(OnDevice, FeedsAreOnTheCpu) {
  const auto executor = MakeExecutor();
  executor->scope().Set("w", matrix_);
  CompiledProgram program = executor->Compile(*ParseProgramText(kPlain));
  const Tensor elsewhere({2, 2}, DType::kFloat32, EmulatedPlace());
  EXPECT_EQ(ErrorText([&] {
              program.Run({{"x", elsewhere}}, {"s"});
            }),
            "feed \"x\": the tensor is on cuda:1000, expected one on the CPU");
}

}  // namespace
}  // namespace skiff
