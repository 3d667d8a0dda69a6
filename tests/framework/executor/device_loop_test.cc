// Loops and branches run on the CPU beside a program on a device, and may read and write its
// variables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/math.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor.h"
#include "framework/executor/executor.h"
#include "framework/op/registry.h"
#include "tests/harness/emulated_device.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;

class LoopsOnDevice : public ::testing::Test {
 protected:
  // Runs startup, then main twice, on the emulated device. Returns what it holds as `state`.
  std::vector<float> StateAfterTwoRuns(const Program& startup, const Program& main,
                                       const FeedList& feeds) {
    Executor executor(harness::EmulatedPlace(), nullptr, registry_.get());
    executor.Run(startup);
    CompiledProgram compiled = executor.Compile(main);
    compiled.Run(feeds, {});
    compiled.Run(feeds, {});
    const Tensor& state = executor.scope().Get("state");
    EXPECT_EQ(state.place(), harness::EmulatedPlace());
    return CopyToCpu(state).ToVector<float>();
  }

  const std::unique_ptr<OpRegistry> registry_ = harness::RegistryWithEmulation(DefaultOpRegistry());
};

// state = state · 2 in each iteration.
TEST_F(LoopsOnDevice, EachIterationSeesWhatTheLastHasWritten) {
  for (const int64_t iterations : {5, 0}) {
    Program main;
    Program startup;
    const ProgramGuard guard(&main, &startup);
    const Variable state =
        CreatePersistable("state", {2}, DType::kFloat32, 1.0, std::source_location::current());
    const Variable n = layers::Data("n", {1}, DType::kInt64);
    const Variable i = layers::FillConstant({1}, DType::kInt64, 0.0);
    const Variable goes_on = layers::LessThan(i, n);
    layers::While loop(goes_on);
    loop.Body([&] {
      layers::AssignTo(state * 2.0f, state);
      layers::Increment(i);
      layers::AssignTo(layers::LessThan(i, n), goes_on);
    });
    const float expected = iterations == 0 ? 1.0f : 1024.0f;
    EXPECT_THAT(
        StateAfterTwoRuns(startup, main, {{"n", Tensor::FromValues<int64_t>({1}, {iterations})}}),
        ElementsAre(expected, expected))
        << iterations << " iterations";
  }
}

TEST_F(LoopsOnDevice, ABranchThatIsNotTakenChangesNothing) {
  for (const bool flag : {true, false}) {
    Program main;
    Program startup;
    const ProgramGuard guard(&main, &startup);
    const Variable state =
        CreatePersistable("state", {2}, DType::kFloat32, 3.0, std::source_location::current());
    const Variable taken = layers::Data("flag", {1}, DType::kBool);
    layers::Cond(
        taken,
        [&] {
          layers::AssignTo(state + 1.0f, state);
          return Variables{layers::FillConstant({1}, DType::kFloat32, 0.0)};
        },
        [&] { return Variables{layers::FillConstant({1}, DType::kFloat32, 1.0)}; });
    const float expected = flag ? 5.0f : 3.0f;
    EXPECT_THAT(StateAfterTwoRuns(startup, main, {{"flag", Tensor::FromValues<bool>({1}, {flag})}}),
                ElementsAre(expected, expected));
  }
}

}  // namespace
}  // namespace skiff
