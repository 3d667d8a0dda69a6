// What ops keep in the memory of the host though the program runs on a device, and outputs that are
// written in the background.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "framework/ir/text.h"
#include "framework/op/background_kernel.h"
#include "operators/optimizer/optimizer_ops.h"
#include "tests/harness/emulated_device.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;

// w is averaged in e, with the decays' product in p.
class HostStates : public testing::Test {
 protected:
  // Runs the average twice, on a device if `place` is one. Returns the scope.
  Scope& AveragedTwice(bool on_host, Place place) {
    const auto program = ParseProgramText(
        StrCat("program { block 0 { param w float32 [2] persistable var e float32 [2] persistable "
               "var p float64 [1] persistable {AverageOut: [e], DecayProductOut: [p]} = "
               "exponential_moving_average(Param: [w], Average: [e], DecayProduct: [p]) "
               "{decay = 0.5, on_host = ",
               on_host ? "true" : "false", "} } }"));
    executor_ = std::make_unique<Executor>(place, nullptr, registry_.get());
    Scope& scope = executor_->scope();
    scope.Set("w", Tensor::FromValues<float>({2}, {1, 2}));
    scope.Set("e", Tensor::FromValues<float>({2}, {0, 0}));
    scope.Set("p", Tensor::FromValues<double>({1}, {1}));
    CompiledProgram compiled = executor_->Compile(*program);
    compiled.Run({}, {});
    compiled.Run({}, {});
    return scope;
  }

  OpRegistry optimizer_ops_;
  std::unique_ptr<OpRegistry> registry_ =
      (RegisterOptimizerOps(optimizer_ops_), harness::RegistryWithEmulation(optimizer_ops_));
  std::unique_ptr<Executor> executor_;
};

TEST_F(HostStates, AreOnTheCpuWhenTheProgramRunsOnADevice) {
  const Scope& scope = AveragedTwice(true, harness::EmulatedPlace());
  EXPECT_EQ(scope.Get("e").place(), Place::Cpu());
  EXPECT_EQ(scope.Get("p").place(), Place::Cpu());
  EXPECT_EQ(scope.Get("w").place(), harness::EmulatedPlace());
  EXPECT_THAT(scope.Get("e").ToVector<float>(), ElementsAre(0.75f, 1.5f));
}

TEST_F(HostStates, AreOnTheDeviceUnlessTheOpKeepsThemOnTheHost) {
  const Scope& scope = AveragedTwice(false, harness::EmulatedPlace());
  EXPECT_EQ(scope.Get("e").place(), harness::EmulatedPlace());
  EXPECT_THAT(CopyToCpu(scope.Get("e")).ToVector<float>(), ElementsAre(0.75f, 1.5f));
}

TEST_F(HostStates, AreWhatTheyAreOnTheCpu) {
  const Scope& scope = AveragedTwice(true, Place::Cpu());
  EXPECT_EQ(scope.Get("w").place(), Place::Cpu());
  EXPECT_THAT(scope.Get("e").ToVector<float>(), ElementsAre(0.75f, 1.5f));
}

// w, on the device, becomes w / 4 in each step, after which e becomes (e + w) / 2, in host memory.
class StatesBesideTheProgram : public testing::Test {
 protected:
  StatesBesideTheProgram()
      : step_(ParseProgramText(
            "program { block 0 { param w float32 [2] persistable var e float32 [2] persistable "
            "var p float64 [1] persistable {Out: [w]} = scale(X: [w]) {scale = 0.25} "
            "{AverageOut: [e], DecayProductOut: [p]} = exponential_moving_average("
            "Param: [w], Average: [e], DecayProduct: [p]) {decay = 0.5, on_host = true} } }")) {}

  // Returns e after these steps, between which nobody waits.
  std::vector<float> AverageAfter(int steps, Place place) {
    Executor executor(place, nullptr, registry_.get());
    executor.scope().Set("w", Tensor::FromValues<float>({2}, {16, 48}));
    executor.scope().Set("e", Tensor::FromValues<float>({2}, {0, 0}));
    executor.scope().Set("p", Tensor::FromValues<double>({1}, {1}));
    BoundProgram bound = executor.Compile(*step_).Bind({}, {});
    const Tensor& unwaited = executor.scope().Get("e");
    for (int i = 0; i < steps; ++i) bound.Step();
    const std::vector<float> before = unwaited.ToVector<float>();
    const std::vector<float> after = executor.scope().Get("e").ToVector<float>();
    if (!place.is_cpu()) {
      EXPECT_NE(before, after) << "no step waits for its own average";
    }
    return after;
  }

  const std::unique_ptr<OpRegistry> registry_ = harness::RegistryWithEmulation(DefaultOpRegistry());
  const std::unique_ptr<Program> step_;
};

// Each average must see the parameters of its own step, though the next steps write them again.
TEST_F(StatesBesideTheProgram, AreThoseOfTheCpu) {
  for (const int steps : {1, 2, 5}) {
    EXPECT_EQ(AverageAfter(steps, harness::EmulatedPlace()), AverageAfter(steps, Place::Cpu()))
        << steps << " steps";
  }
  EXPECT_THAT(AverageAfter(2, harness::EmulatedPlace()), ElementsAre(1.5f, 4.5f));
}

// Out = X + 1, once somebody waits for it.
class LateWrites final : public PendingWrites {
 public:
  void Wait() override {
    if (std::exchange(fails_, false)) {
      writes_.clear();
      throw Error(ErrorCode::kIo, "the writes are lost");
    }
    for (const std::function<void()>& write : std::exchange(writes_, {})) write();
  }
  void Add(std::function<void()> write) { writes_.push_back(std::move(write)); }
  // The next Wait fails.
  void Fail() { fails_ = true; }

 private:
  bool fails_ = false;
  std::vector<std::function<void()>> writes_;
};

class LateKernel final : public BackgroundKernel {
 public:
  explicit LateKernel(LateWrites* writes) : writes_(writes) {}
  ~LateKernel() override { writes_->Wait(); }

  PendingWrites* pending() const override { return writes_; }
  void Run(const KernelContext& run) override {
    const float* x = run.input(0).data<float>();
    float* out = run.output(0).data<float>();
    writes_->Add([=] { *out = *x + 1; });
  }

 private:
  LateWrites* writes_;
};

class BackgroundOutputs : public testing::Test {
 protected:
  BackgroundOutputs() {
    OpDef def;
    def.type = "late_increment";
    def.doc = "Out = X + 1, some time.";
    def.inputs = {{.name = "X", .doc = "a number"}};
    def.outputs = {{.name = "Out", .doc = "the next one"}};
    def.in_place = {{"X", "Out"}};
    def.has_side_effect = true;
    def.infer = [](OpContext& context) { context.SetOutputLike("Out", "X"); };
    def.no_gradient_reason = "a test";
    registry_.Add(std::move(def));
    registry_.AddKernel("late_increment", {.prepare = [this](PrepareContext&) {
                          return std::make_unique<LateKernel>(&writes_);
                        }});
    program_ = ParseProgramText(
        "program { block 0 { var n float32 [1] persistable {Out: [n]} = late_increment(X: [n]) } "
        "}");
    executor_.scope().Set("n", Tensor::FromValues<float>({1}, {0}));
  }

  // The kernels of the executor's programs write when they go.
  LateWrites writes_;
  OpRegistry registry_;
  std::unique_ptr<Program> program_;
  Executor executor_{Place::Cpu(), nullptr, &registry_};
};

TEST_F(BackgroundOutputs, AreCompleteForEveryReader) {
  BoundProgram step = executor_.Compile(*program_).Bind({}, {});
  const Tensor& n = executor_.scope().Get("n");
  for (int i = 0; i < 3; ++i) step.Step();
  EXPECT_THAT(n.ToVector<float>(), ElementsAre(0)) << "a step waits for nothing";
  EXPECT_THAT(executor_.scope().Get("n").ToVector<float>(), ElementsAre(3));
}

TEST_F(BackgroundOutputs, AreFetchedWhenTheyAreThere) {
  BoundProgram step = executor_.Compile(*program_).Bind({}, {"n"});
  for (int i = 1; i <= 3; ++i) {
    step.Step();
    EXPECT_EQ(step.fetch(0).Item<float>(), static_cast<float>(i));
  }
}

// A run that fails while its fetches are copied is undone like one that fails before.
TEST_F(BackgroundOutputs, ThatAreLostWhenTheyAreFetchedUndoTheRun) {
  const auto program = ParseProgramText(
      "program { block 0 { var n float32 [1] persistable var made float32 [1] persistable "
      "{Out: [made]} = late_increment(X: [n]) } }");
  CompiledProgram compiled = executor_.Compile(*program);
  writes_.Fail();
  EXPECT_THROW(compiled.Run({}, {"made"}), Error);
  EXPECT_EQ(executor_.scope().Find("made"), nullptr);
  EXPECT_EQ(compiled.Run({}, {"made"})[0].Item<float>(), 1);
  EXPECT_THAT(executor_.scope().Get("made").ToVector<float>(), ElementsAre(1));
}

TEST_F(BackgroundOutputs, AreWrittenWhenTheProgramIsGone) {
  executor_.Run(*program_);
  EXPECT_THAT(executor_.scope().Get("n").ToVector<float>(), ElementsAre(1));
}

}  // namespace
}  // namespace skiff
