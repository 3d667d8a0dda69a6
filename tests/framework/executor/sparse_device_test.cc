// Sparse gradients of programs on a device: they are made and used there, are copied where an op
// has no kernel, and come from loops and branches on the CPU. All has the bits of the CPU.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/analysis/ops_on_host.h"
#include "framework/autodiff/append_backward.h"
#include "framework/builder/activation.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/gradient_clip.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/adam.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/static_rnn.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/op/registry.h"
#include "tests/harness/emulated_device.h"

namespace skiff {
namespace {

using MakeLoss = std::function<Variable()>;

Variable Embed(const Variable& ids) {
  return layers::Embedding(
      ids, {.rows = 7, .width = 3, .is_sparse = true, .param_attr = {.name = "table"}});
}

// The table is looked up twice, so gradients add up.
Variable LossOfLookups() {
  const Variable ids = layers::Data("ids", {5, 2, 1}, DType::kInt64);
  const Variable once = Embed(layers::Reshape(ids, {10}));
  const Variable again = Embed(layers::Reshape(ids, {10}));
  return layers::Mean(layers::Square(layers::Tanh(once) + again));
}

Variable LossOfLoop() {
  const Variable ids = layers::Data("ids", {5, 2, 1}, DType::kInt64);
  const Variable first = layers::FillConstant({2, 3}, DType::kFloat32, 0.0);
  layers::StaticRnn rnn;
  rnn.Body([&] {
    const Variable id = layers::Reshape(rnn.StepInput(ids), {2});
    const Variable h = rnn.Memory(first);
    const Variable next = layers::Tanh(h * 0.5f + Embed(id));
    rnn.UpdateMemory(h, next);
    rnn.StepOutput(next);
  });
  return layers::Mean(layers::Square(rnn.Outputs()[0]));
}

Variable LossOfBranch() {
  const Variable ids = layers::Reshape(layers::Data("ids", {5, 2, 1}, DType::kInt64), {10});
  const Variable flag = layers::FillConstant({1}, DType::kBool, 1.0);
  const Variables out = layers::Cond(
      flag, [&] { return Variables{Embed(ids)}; },
      [&] { return Variables{layers::Tanh(Embed(ids))}; });
  return layers::Mean(layers::Square(out[0]));
}

FeedList Feeds() {
  return {{"ids", Tensor::FromValues<int64_t>({5, 2, 1}, {1, 2, 2, 2, 0, 6, 1, 1, 3, 2})}};
}

class SparseGradientsOnDevice : public ::testing::Test {
 protected:
  // The table after three steps of lazy Adam with clipped gradients.
  static std::vector<float> TrainedTable(const MakeLoss& make_loss, Place place,
                                         const OpRegistry& registry, bool runs_on_device) {
    Program main, startup;
    main.seed = startup.seed = 7;
    const ProgramGuard guard(&main, &startup);
    const Variable loss = make_loss();
    optimizer::Adam({.learning_rate = 0.1, .lazy_mode = true, .clip = ClipByGlobalNorm(0.1f)})
        .Minimize(loss);
    Executor executor(place, nullptr, &registry);
    executor.Run(startup);
    CompiledProgram compiled = executor.Compile(main);
    if (!place.is_cpu()) {
      const BoundProgram bound = compiled.Bind(Feeds(), {loss});
      EXPECT_EQ(OpsOnHost(bound.plan()).empty(), runs_on_device);
    }
    for (int i = 0; i < 3; ++i) compiled.Run(Feeds(), {loss});
    return CopyToCpu(executor.scope().Get("table")).ToVector<float>();
  }

  static void ExpectTheBitsOfTheCpu(const MakeLoss& make_loss, const OpRegistry& registry,
                                    bool runs_on_device) {
    EXPECT_EQ(TrainedTable(make_loss, harness::EmulatedPlace(), registry, runs_on_device),
              TrainedTable(make_loss, Place::Cpu(), registry, false));
  }

  const std::unique_ptr<OpRegistry> registry_ = harness::RegistryWithEmulation(DefaultOpRegistry());
};

TEST_F(SparseGradientsOnDevice, StayThere) {
  ExpectTheBitsOfTheCpu(LossOfLookups, *registry_, /*runs_on_device=*/true);
}

TEST_F(SparseGradientsOnDevice, AreCopiedForOpsWithoutAKernel) {
  for (const std::string type : {"adam", "sum", "squared_l2_norm", "elementwise_mul"}) {
    const auto some = harness::RegistryWithEmulation(
        DefaultOpRegistry(), [&](const OpDef& def) { return def.type == type; });
    ExpectTheBitsOfTheCpu(LossOfLookups, *some, /*runs_on_device=*/false);
  }
}

TEST_F(SparseGradientsOnDevice, ComeFromLoopsAndBranchesOnTheCpu) {
  ExpectTheBitsOfTheCpu(LossOfLoop, *registry_, /*runs_on_device=*/false);
  ExpectTheBitsOfTheCpu(LossOfBranch, *registry_, /*runs_on_device=*/false);
}

TEST_F(SparseGradientsOnDevice, CanBeFetched) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable loss = LossOfLookups();
  const std::string gradient =
      AppendBackward(*registry_, &main, loss.name()).parameters[0].gradient->name;
  const auto fetch = [&](Place place) {
    Executor executor(place, nullptr, registry_.get());
    executor.Run(startup);
    return executor.Run(main, Feeds(), {gradient})[0];
  };
  const Tensor found = fetch(harness::EmulatedPlace());
  const Tensor expected = fetch(Place::Cpu());
  ASSERT_TRUE(found.is_selected_rows());
  EXPECT_TRUE(found.place().is_cpu());
  EXPECT_EQ(found.height(), expected.height());
  EXPECT_EQ(found.ToVector<float>(), expected.ToVector<float>());
  EXPECT_EQ(std::vector(found.rows().begin(), found.rows().end()),
            std::vector(expected.rows().begin(), expected.rows().end()));
}

}  // namespace
}  // namespace skiff
