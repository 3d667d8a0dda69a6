// Loops of a program on a device: they run there if the host can issue their iterations without
// waiting, else on the CPU, beside it, as branches do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/analysis/ops_on_host.h"
#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/static_rnn.h"
#include "framework/builder/tensor_array_layers.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/ir/text.h"
#include "framework/op/registry.h"
#include "framework/tensor/tensor_array.h"
#include "tests/harness/emulated_device.h"
#include "tests/harness/error_text.h"
#include "tests/harness/pass_check.h"
#include "tests/harness/ragged_training.h"
#include "tests/harness/sgd_training.h"

namespace skiff {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;

class LoopsOnDevice : public ::testing::Test {
 protected:
  // Runs startup, then main twice, on the emulated device. Returns what it holds as `state`.
  std::vector<float> StateAfterTwoRuns(const Program& startup, const Program& main,
                                       const FeedList& feeds) {
    Executor executor(harness::EmulatedPlace(), nullptr, registry_.get());
    executor.Run(startup);
    CompiledProgram compiled = executor.Compile(main);
    on_host_ = OpsOnHost(compiled.Bind(feeds, {}).plan());
    compiled.Run(feeds, {});
    compiled.Run(feeds, {});
    const Tensor& state = executor.scope().Get("state");
    EXPECT_EQ(state.place(), harness::EmulatedPlace());
    return CopyToCpu(state).ToVector<float>();
  }

  std::map<std::string, int64_t> on_host_;  // in the last two runs
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
    EXPECT_THAT(on_host_, IsEmpty());
  }
}

// The condition is computed from what the device makes.
TEST_F(LoopsOnDevice, ALoopThatTheDeviceEndsRunsOnTheCpu) {
  Program main;
  Program startup;
  const ProgramGuard guard(&main, &startup);
  const Variable state =
      CreatePersistable("state", {2}, DType::kFloat32, 1.0, std::source_location::current());
  const Variable bound = layers::FillConstant({1}, DType::kFloat32, 100.0);
  const Variable goes_on = layers::LessThan(layers::Mean(state), bound);
  layers::While loop(goes_on);
  loop.Body([&] {
    layers::AssignTo(state * 2.0f, state);
    layers::AssignTo(layers::LessThan(layers::Mean(state), bound), goes_on);
  });
  EXPECT_THAT(StateAfterTwoRuns(startup, main, {}), ElementsAre(128.0f, 128.0f));
  EXPECT_THAT(on_host_, Contains(Key("while")));
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

// The host reads the mask when it issues select_input: it must wait for what the last step has
// made of it.
TEST_F(LoopsOnDevice, WhatTheHostReadsMayComeFromTheDevice) {
  Executor executor(harness::EmulatedPlace(), nullptr, registry_.get());
  executor.scope().Set("mask", Tensor::FromValues<int32_t>({1}, {0}));
  CompiledProgram program = executor.Compile(*ParseProgramText(R"(program { block 0 {
    var "a" float32 [2]
    var "b" float32 [2]
    var "mask" int32 [1] persistable
    var "chosen" float32 [2]
    {Out: ["chosen"]} = select_input(X: ["a", "b"], Mask: ["mask"])
    {Out: ["mask"]} = scale(X: ["mask"]) {scale = -1.0, bias = 1.0}
  } })"));
  BoundProgram bound = program.Bind({{"a", Tensor::FromValues<float>({2}, {1, 2})},
                                     {"b", Tensor::FromValues<float>({2}, {3, 4})}},
                                    {"chosen"});
  EXPECT_THAT(OpsOnHost(bound.plan()), IsEmpty());
  for (const bool is_first : {true, false, true}) {
    bound.Step();
    EXPECT_THAT(bound.fetch(0).ToVector<float>(), is_first ? ElementsAre(1, 2) : ElementsAre(3, 4));
    bound.Step();
    bound.Step();
  }
}

// Earlier iterations have already written the variable when the host finds that the array has no
// such element.
TEST_F(LoopsOnDevice, AnErrorThatTheHostFindsLeavesTheScopeAsItWas) {
  Program main;
  Program startup;
  const ProgramGuard guard(&main, &startup);
  const Variable state =
      CreatePersistable("state", {2}, DType::kFloat32, 1.0, std::source_location::current());
  const Variable x = layers::Data("x", {2}, DType::kFloat32);
  const Variable n = layers::Data("n", {1}, DType::kInt64);
  const Variable array = layers::CreateArray(DType::kFloat32);
  layers::ArrayWrite(x, layers::FillConstant({1}, DType::kInt64, 0.0), array);
  layers::ArrayWrite(x, layers::FillConstant({1}, DType::kInt64, 1.0), array);
  const Variable i = layers::FillConstant({1}, DType::kInt64, 0.0);
  const Variable goes_on = layers::LessThan(i, n);
  layers::While loop(goes_on);
  loop.Body([&] {
    layers::AssignTo(state + layers::ArrayRead(array, i), state);
    layers::Increment(i);
    layers::AssignTo(layers::LessThan(i, n), goes_on);
  });
  Executor executor(harness::EmulatedPlace(), nullptr, registry_.get());
  executor.Run(startup);
  CompiledProgram compiled = executor.Compile(main);
  const auto feeds = [](int64_t count) {
    return FeedList{{"x", Tensor::FromValues<float>({2}, {3, 4})},
                    {"n", Tensor::FromValues<int64_t>({1}, {count})}};
  };
  EXPECT_THAT(OpsOnHost(compiled.Bind(feeds(2), {}).plan()), IsEmpty());
  compiled.Run(feeds(2), {});
  EXPECT_THAT(ErrorText(ErrorCode::kOutOfRange, [&] { compiled.Run(feeds(5), {}); }),
              AllOf(HasSubstr("iteration 2: read_from_array"),
                    HasSubstr("the array has no element 2, it has 2")));
  EXPECT_THAT(CopyToCpu(executor.scope().Get("state")).ToVector<float>(), ElementsAre(7, 9));
}

// What the training of a recurrence leaves: the loss of each step.
struct Trained {
  std::vector<float> losses;
  std::map<std::string, int64_t> on_host;
  int64_t graphs = 0;
};

Trained TrainRecurrence(Place place, const OpRegistry* registry, const CompileOptions& options) {
  Program main;
  Program startup;
  const ProgramGuard guard(&main, &startup);
  const Variable x = layers::Data("x", {4, 2, 3}, DType::kFloat32);
  const Variable zeros = layers::FillConstant({2, 5}, DType::kFloat32, 0.0);
  layers::StaticRnn rnn;
  rnn.Body([&] {
    const Variable part = rnn.StepInput(x);
    const Variable before = rnn.Memory(zeros);
    const Variable state =
        layers::Dropout(layers::Fc(layers::Concat({part, before}, 1), 5, {.act = "tanh"}), 0.25);
    rnn.UpdateMemory(before, state);
    rnn.StepOutput(state);
  });
  const Variable loss = layers::Mean(layers::Square(rnn.Outputs()[0]));
  optimizer::Sgd({.learning_rate = 0.5}).Minimize(loss);

  Executor executor(place, nullptr, registry);
  executor.Run(startup);
  CompiledProgram compiled = executor.Compile(main, options);
  std::vector<float> values(24);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 3;
  BoundProgram bound =
      compiled.Bind({{"x", Tensor::FromValues<float>({4, 2, 3}, values)}}, {loss.name()});
  Trained trained{.on_host = OpsOnHost(bound.plan())};
  for (int i = 0; i < 4; ++i) {
    bound.Step();
    trained.losses.push_back(bound.fetch(0).Item<float>());
  }
  trained.graphs = bound.statistics().graphs;
  return trained;
}

TEST_F(LoopsOnDevice, ARecurrenceRunsThereWithItsGradient) {
  // Some passes change the order of sums.
  CompileOptions options = harness::NoPasses().options;
  options.graphs = false;
  const Trained on_cpu = TrainRecurrence(Place::Cpu(), nullptr, options);
  const Trained plain = TrainRecurrence(harness::EmulatedPlace(), registry_.get(), options);
  EXPECT_EQ(plain.losses, on_cpu.losses);
  EXPECT_THAT(plain.on_host, IsEmpty());
  options.graphs = true;
  const Trained in_graphs = TrainRecurrence(harness::EmulatedPlace(), registry_.get(), options);
  EXPECT_EQ(in_graphs.losses, on_cpu.losses);
  EXPECT_GT(in_graphs.graphs, 0);
  EXPECT_NE(on_cpu.losses.front(), on_cpu.losses.back());
}

TEST_F(LoopsOnDevice, PassesRunOnTheBodyOfARecurrence) {
  const Trained on_cpu = TrainRecurrence(Place::Cpu(), nullptr, {});
  const Trained found = TrainRecurrence(harness::EmulatedPlace(), registry_.get(), {});
  EXPECT_THAT(found.on_host, IsEmpty());
  for (size_t i = 0; i < on_cpu.losses.size(); ++i) {
    EXPECT_NEAR(found.losses[i], on_cpu.losses[i], 1e-5f);
  }
}

TEST_F(LoopsOnDevice, ARecurrenceOfWhichAnOpHasNoKernelThereRunsOnTheCpu) {
  const auto without_tanh = harness::RegistryWithEmulation(
      DefaultOpRegistry(), [](const OpDef& def) { return def.type == "tanh_grad"; });
  const Trained found = TrainRecurrence(harness::EmulatedPlace(), without_tanh.get(), {});
  EXPECT_THAT(found.on_host, Contains(Key("recurrent")));
  const Trained on_cpu = TrainRecurrence(Place::Cpu(), nullptr, {});
  for (size_t i = 0; i < on_cpu.losses.size(); ++i) {
    EXPECT_NEAR(found.losses[i], on_cpu.losses[i], 1e-5f);
  }
}

// ---- a `while` with a gradient

// Trains w, by which a state is multiplied `count` times, and returns the loss of each step.
// `is_segmented`: with an op whose rows depend on data, which another part of the program reads.
Trained TrainWhile(Place place, const OpRegistry* registry, int64_t count, bool is_segmented) {
  Program main;
  Program startup;
  const ProgramGuard guard(&main, &startup);
  const Variable x = layers::Data("x", {2, 3}, DType::kFloat32);
  const Variable n = layers::Data("n", {1}, DType::kInt64);
  const Variable zero = layers::FillConstant({1}, DType::kInt64, 0.0);
  const Variables after = layers::WhileLoop(
      [&](const Variables& now) { return layers::LessThan(now[0], n); },
      [&](const Variables& now) {
        const Variable state = layers::Tanh(layers::Fc(now[1], 3, {.param_attr = {.name = "w"}}));
        return Variables{now[0] + layers::FillConstant({1}, DType::kInt64, 1.0), state};
      },
      {zero, x});
  Variable loss = layers::Mean(layers::Square(layers::Fc(after[1], 2)));
  if (is_segmented) {
    const Variable positive = layers::MaskedSelect(x, layers::GreaterThan(x, x * 0.0f));
    loss = loss + layers::Mean(positive);
  }
  optimizer::Sgd({.learning_rate = 0.5}).Minimize(loss);
  Executor executor(place, nullptr, registry);
  executor.Run(startup);
  CompiledProgram compiled = executor.Compile(main, harness::NoPasses().options);
  BoundProgram bound = compiled.Bind(
      {{"x", harness::SmallNumbers({2, 3}, 1)}, {"n", Tensor::FromValues<int64_t>({1}, {count})}},
      {loss.name()});
  Trained trained{.on_host = OpsOnHost(bound.plan())};
  for (int i = 0; i < 3; ++i) {
    bound.Step();
    trained.losses.push_back(bound.fetch(0).Item<float>());
  }
  return trained;
}

TEST_F(LoopsOnDevice, AWhileLoopRunsThereWithItsGradient) {
  for (const int64_t count : {0, 1, 5}) {
    const Trained on_cpu = TrainWhile(Place::Cpu(), nullptr, count, false);
    const Trained found = TrainWhile(harness::EmulatedPlace(), registry_.get(), count, false);
    EXPECT_EQ(found.losses, on_cpu.losses) << count << " iterations";
    EXPECT_THAT(found.on_host, IsEmpty());
    EXPECT_NE(on_cpu.losses.front(), on_cpu.losses.back());
  }
}

// The parts of a program don't know where others have an array.
TEST_F(LoopsOnDevice, InAProgramOfSeveralSegmentsAWhileLoopRunsOnTheCpu) {
  const Trained on_cpu = TrainWhile(Place::Cpu(), nullptr, 3, true);
  const Trained found = TrainWhile(harness::EmulatedPlace(), registry_.get(), 3, true);
  EXPECT_EQ(found.losses, on_cpu.losses);
  EXPECT_THAT(found.on_host, Contains(Key("while")));
}

TEST_F(LoopsOnDevice, BothHalvesOfALoopRunInOnePlace) {
  // The gradient adds up what the iterations make of w.
  const auto without_sum = harness::RegistryWithEmulation(
      DefaultOpRegistry(), [](const OpDef& def) { return def.type == "sum"; });
  const Trained on_cpu = TrainWhile(Place::Cpu(), nullptr, 3, false);
  const Trained found = TrainWhile(harness::EmulatedPlace(), without_sum.get(), 3, false);
  EXPECT_EQ(found.losses, on_cpu.losses);
  EXPECT_THAT(found.on_host, AllOf(Contains(Key("while")), Contains(Key("while_grad"))));
}

TEST_F(LoopsOnDevice, AnOpThatLacksAKernelIsToldOfEvenIfItMakesANumber) {
  const auto without_square = harness::RegistryWithEmulation(
      DefaultOpRegistry(), [](const OpDef& def) { return def.type == "square"; });
  Program main;
  Program startup;
  const ProgramGuard guard(&main, &startup);
  const Variable x = layers::Data("x", {2, 3}, DType::kFloat32);
  const Variable y = layers::Square(layers::Mean(x));
  Executor executor(harness::EmulatedPlace(), nullptr, without_square.get());
  const BoundProgram bound =
      executor.Compile(main).Bind({{"x", harness::SmallNumbers({2, 3}, 1)}}, {y.name()});
  EXPECT_THAT(OpsOnHost(bound.plan()), ElementsAre(Key("square")));
}

// ---- loops over ragged batches

TEST_F(LoopsOnDevice, ALoopOverRaggedBatchesRunsThereWithItsGradient) {
  // Later batches are longer and shorter, so that arrays and stacks grow and aren't full.
  const std::vector<harness::Lengths> batches = {
      {3, 1, 2}, {5, 2, 7}, {1, 1}, {4, 9, 2, 6, 1}, {3, 1, 2}};
  const CompileOptions options = harness::NoPasses().options;
  const harness::RaggedTraining on_cpu =
      harness::TrainRagged(Place::Cpu(), nullptr, options, batches);
  const harness::RaggedTraining found =
      harness::TrainRagged(harness::EmulatedPlace(), registry_.get(), options, batches);
  EXPECT_EQ(found.losses, on_cpu.losses);
  EXPECT_THAT(found.on_host, IsEmpty());
  EXPECT_NE(on_cpu.losses.front(), on_cpu.losses.back());
}

// The device may still be using it.
TEST_F(LoopsOnDevice, AnArrayKeepsMemoryThatItsElementsHaveOutgrown) {
  TensorArray array(harness::EmulatedPlace());
  array.Make(0, {2}, DType::kFloat32);
  const std::weak_ptr<Buffer> outgrown = array.Nested(1)->Make(0, {2}, DType::kFloat32).buffer();
  EXPECT_FALSE(array.HasOutgrown());
  array.Nested(1)->Make(0, {8}, DType::kFloat32);
  EXPECT_TRUE(array.HasOutgrown());
  EXPECT_FALSE(outgrown.expired());
  array.ReleaseOutgrown();
  EXPECT_FALSE(array.HasOutgrown());
  EXPECT_TRUE(outgrown.expired());
}

TEST_F(LoopsOnDevice, StepsOverRaggedBatchesNeedNoFetchInBetween) {
  const std::vector<harness::Lengths> batches = {{1, 1}, {5, 2, 7}, {4, 9, 2, 6, 1}};
  const CompileOptions options = harness::NoPasses().options;
  const harness::RaggedTraining on_cpu =
      harness::TrainRagged(Place::Cpu(), nullptr, options, batches, /*waits=*/false);
  const harness::RaggedTraining found = harness::TrainRagged(
      harness::EmulatedPlace(), registry_.get(), options, batches, /*waits=*/false);
  EXPECT_EQ(found.losses, on_cpu.losses);
}

TEST_F(LoopsOnDevice, PassesRunOnTheBodyOfALoopOverRaggedBatches) {
  const std::vector<harness::Lengths> batches = {{3, 1, 2}, {5, 2, 7}, {1, 1}};
  const harness::RaggedTraining on_cpu = harness::TrainRagged(Place::Cpu(), nullptr, {}, batches);
  const harness::RaggedTraining found =
      harness::TrainRagged(harness::EmulatedPlace(), registry_.get(), {}, batches);
  EXPECT_THAT(found.on_host, IsEmpty());
  for (size_t i = 0; i < on_cpu.losses.size(); ++i) {
    EXPECT_NEAR(found.losses[i], on_cpu.losses[i], 1e-5f) << i;
  }
}

TEST_F(LoopsOnDevice, ALoopOverRaggedBatchesOfWhichAnOpHasNoKernelThereRunsOnTheCpu) {
  const std::vector<harness::Lengths> batches = {{3, 1, 2}, {5, 2, 7}};
  const auto without_tanh = harness::RegistryWithEmulation(
      DefaultOpRegistry(), [](const OpDef& def) { return def.type == "tanh_grad"; });
  const CompileOptions options = harness::NoPasses().options;
  const harness::RaggedTraining on_cpu =
      harness::TrainRagged(Place::Cpu(), nullptr, options, batches);
  const harness::RaggedTraining found =
      harness::TrainRagged(harness::EmulatedPlace(), without_tanh.get(), options, batches);
  EXPECT_THAT(found.on_host, Contains(Key("while")));
  EXPECT_EQ(found.losses, on_cpu.losses);
}

}  // namespace
}  // namespace skiff
