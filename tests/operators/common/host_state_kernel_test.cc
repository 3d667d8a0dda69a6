// States in host memory beside a program on the emulated device.
#include "operators/common/host_state_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/background_kernel.h"
#include "framework/op/host_slots.h"
#include "framework/tensor/tensor.h"
#include "memory/device.h"
#include "memory/places.h"
#include "tests/harness/emulated_device.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using harness::EmulatedPlace;
using ::testing::HasSubstr;

// StateOut = 2 * State + Param, unless the test wants the kernel to fail.
class HostStateKernelTest : public testing::Test {
 protected:
  HostStateKernelTest() {
    OpDef def;
    def.type = "add_up";
    def.doc = "StateOut = 2 * State + Param.";
    def.inputs = {{.name = "Param", .doc = "a number"}, {.name = "State", .doc = "the sum so far"}};
    def.outputs = {{.name = "StateOut", .doc = "the sum"}};
    def.attrs = {{.name = kOnHostAttr,
                  .type = AttrType::kBool,
                  .default_value = false,
                  .doc = "where the sum is"}};
    def.in_place = {{"State", "StateOut"}};
    def.update = UpdateRule{.lists = {"Param", "State"}};
    def.infer = [](OpContext& context) { context.SetOutputLike("StateOut", "State"); };
    def.no_gradient_reason = "a test";
    registry_.Add(std::move(def));
    registry_.AddKernel("add_up", {.prepare = [this](PrepareContext&) {
                          return MakeKernel([this](const KernelContext& run) {
                            SKIFF_ENFORCE(!std::exchange(fails_, false), kOutOfRange, "too much");
                            float* state = run.output(0).data<float>();
                            *state = 2 * *state + *run.input(0).data<float>();
                          });
                        }});
    op_.type = "add_up";
    op_.SetInput("Param", {"w"});
    op_.SetInput("State", {"s"});
    op_.SetOutput("StateOut", {"s"});
    op_.SetAttr(kOnHostAttr, true);
    param_ = Tensor({1}, DType::kFloat32, EmulatedPlace());
    state_ = Tensor::FromValues<float>({1}, {10});
    device_ = {.place = EmulatedPlace(), .stream = program_.get()};
    run_.inputs = {&param_, &state_};
    run_.outputs = {&state_};
    run_.device_context = &device_;
  }

  std::unique_ptr<Kernel> Prepare() {
    const TensorMeta number{.shape = {1}, .dtype = DType::kFloat32};
    PrepareContext context(op_, registry_.Get("add_up"), {number, number}, {number},
                           EmulatedPlace());
    return PrepareHostStateKernel(context, registry_);
  }
  static PendingWrites& PendingOf(const Kernel& kernel) {
    return *dynamic_cast<const BackgroundKernel&>(kernel).pending();
  }
  // The program writes the parameter, from memory that must stay.
  void WriteParam(const float* value) {
    program_->Copy(param_.raw_data(), EmulatedPlace(), value, Place::Cpu(), sizeof(float));
  }
  float State() const { return state_.Item<float>(); }

  bool fails_ = false;  // the next run
  OpRegistry registry_;
  Op op_;
  std::unique_ptr<DeviceStream> program_ = DeviceOf(EmulatedPlace()).MakeStream();
  Tensor param_;
  Tensor state_;
  DeviceContext device_;
  KernelContext run_;
};

constexpr float kOne = 1;
constexpr float kTwo = 2;

TEST_F(HostStateKernelTest, ReadsWhatTheProgramHasWrittenBefore) {
  const auto kernel = Prepare();
  kernel->Bind(run_);
  WriteParam(&kOne);
  kernel->Run(run_);
  EXPECT_EQ(State(), 10) << "a run waits for nothing";
  // Nobody has waited for the program.
  PendingOf(*kernel).Wait();
  EXPECT_EQ(State(), 21);
}

TEST_F(HostStateKernelTest, DoesNotReadWhatTheProgramWritesAfterwards) {
  const auto kernel = Prepare();
  kernel->Bind(run_);
  WriteParam(&kOne);
  kernel->Run(run_);
  WriteParam(&kTwo);
  program_->Wait();
  PendingOf(*kernel).Wait();
  EXPECT_EQ(State(), 21);
}

TEST_F(HostStateKernelTest, RunsInOrder) {
  const auto kernel = Prepare();
  kernel->Bind(run_);
  for (const float* value : {&kOne, &kTwo, &kTwo}) {
    WriteParam(value);
    kernel->Run(run_);
  }
  PendingOf(*kernel).Wait();
  EXPECT_EQ(State(), 90);
}

TEST_F(HostStateKernelTest, IsWaitedForByItsDestructor) {
  auto kernel = Prepare();
  kernel->Bind(run_);
  WriteParam(&kOne);
  kernel->Run(run_);
  kernel.reset();
  EXPECT_EQ(State(), 21);
}

// What comes behind a failed run isn't done, since it would go on from a wrong state.
TEST_F(HostStateKernelTest, ThrowsAnErrorOfARunOnce) {
  const auto kernel = Prepare();
  kernel->Bind(run_);
  WriteParam(&kOne);
  fails_ = true;
  kernel->Run(run_);
  kernel->Run(run_);
  const std::string expected = "add_up of an earlier run, in host memory";
  EXPECT_THAT(ErrorText(ErrorCode::kOutOfRange, [&] { PendingOf(*kernel).Wait(); }),
              HasSubstr(expected));
  EXPECT_EQ(State(), 10);
  PendingOf(*kernel).Wait();
  kernel->Run(run_);
  PendingOf(*kernel).Wait();
  EXPECT_EQ(State(), 21);
}

TEST_F(HostStateKernelTest, ThrowsAnErrorOfARunInTheNext) {
  const auto kernel = Prepare();
  kernel->Bind(run_);
  WriteParam(&kOne);
  fails_ = true;
  kernel->Run(run_);
  DeviceOf(EmulatedPlace()).CopyNow(param_.raw_data(), EmulatedPlace(), &kTwo, Place::Cpu(), 4);
  EXPECT_THAT(ErrorText(ErrorCode::kOutOfRange, [&] { kernel->Run(run_); }), HasSubstr("too much"));
  kernel->Run(run_);
  PendingOf(*kernel).Wait();
  EXPECT_EQ(State(), 22);
}

TEST_F(HostStateKernelTest, NeedsItsStatesInHostMemory) {
  const auto kernel = Prepare();
  Tensor elsewhere({1}, DType::kFloat32, EmulatedPlace());
  run_.outputs = {&elsewhere};
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition, [&] { kernel->Bind(run_); }),
              HasSubstr("add_up: a state is on cuda:1000, expected cpu, as on_host = true"));
  op_.SetAttr(kOnHostAttr, false);
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition, [&] { Prepare(); }),
              HasSubstr("add_up: StateOut is on cuda:1000, expected all outputs in host memory"));
}

}  // namespace
}  // namespace skiff
