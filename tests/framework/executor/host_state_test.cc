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
#include "framework/executor/lowering.h"
#include "framework/ir/text.h"
#include "framework/op/background_kernel.h"
#include "framework/op/host_slots.h"
#include "operators/optimizer/optimizer_ops.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Lowering only needs the places of tensors, so no device is needed.
class HostStates : public testing::Test {
 protected:
  HostStates() {
    RegisterOptimizerOps(registry_);
    Hold("w", Place::Cuda());
    Hold("e", Place::Cpu());
    Hold("p", Place::Cpu(), DType::kFloat64);
  }

  void Hold(const std::string& name, Place place, DType dtype = DType::kFloat32) {
    scope_.Set(name, Tensor::Borrow(memory_, {1}, dtype, place));
  }

  // The message of the Error, or "".
  std::string Lowered(const std::string& ops, Place place = Place::Cuda()) const {
    const auto program = ParseProgramText(
        "program { block 0 { param w float32 [1] persistable var e float32 [1] persistable "
        "var f float32 [1] persistable var p float64 [1] persistable " +
        ops + " } }");
    try {
      LowerProgram({.registry = registry_, .scope = scope_, .place = place}, *program, {}, {});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  static std::string Average(const std::string& out, bool on_host) {
    return "{AverageOut: [" + out +
           "], DecayProductOut: [p]} = exponential_moving_average(Param: [w], Average: [e], "
           "DecayProduct: [p]) {on_host = " +
           (on_host ? "true" : "false") + "} ";
  }

  OpRegistry registry_;
  Scope scope_;
  double memory_[1] = {};
};

TEST_F(HostStates, AreOnTheCpuWhenTheProgramRunsOnADevice) {
  EXPECT_EQ(Lowered(Average("e", true)), "");
  EXPECT_THAT(Lowered(Average("e", false)),
              HasSubstr("variable \"e\" is on cpu, the program runs on cuda:0"));
}

TEST_F(HostStates, AreWhatTheyAreOnTheCpu) {
  Hold("w", Place::Cpu());
  EXPECT_EQ(Lowered(Average("e", true), Place::Cpu()), "");
}

TEST_F(HostStates, ParametersAreOnTheDevice) {
  Hold("w", Place::Cpu());
  EXPECT_THAT(Lowered(Average("e", true)),
              HasSubstr("variable \"w\" is on cpu, the program runs on cuda:0"));
}

TEST_F(HostStates, AreRefusedElsewhere) {
  Hold("e", Place::Cuda());
  EXPECT_THAT(Lowered(Average("e", true)),
              HasSubstr("Average \"e\" is on cuda:0, expected cpu: the op has on_host = true, so "
                        "that it computes in host memory"));
  Hold("p", Place::Cuda(), DType::kFloat64);
  EXPECT_EQ(Lowered(Average("e", false)), "");
}

TEST_F(HostStates, MayNotBeMadeOnTheDevice) {
  EXPECT_THAT(
      Lowered(Average("f", true)),
      HasSubstr("AverageOut \"f\" is on cuda:0, expected cpu: the op has on_host = true, so "
                "that it computes in host memory"));
}

TEST_F(HostStates, AreNothingThatTheDeviceReads) {
  EXPECT_THAT(Lowered(Average("e", true) +
                      "{AverageOut: [w], DecayProductOut: [p]} = exponential_moving_average("
                      "Param: [e], Average: [w], DecayProduct: [p]) "),
              HasSubstr("variable \"e\" is on cpu, the program runs on cuda:0"));
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
