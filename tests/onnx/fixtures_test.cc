// Networks that PyTorch has exported (fixtures/README.md) compute what ONNX Runtime computes, are
// fused, in inference and in training, and train as in PyTorch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "framework/base/str_cat.h"
#include "framework/builder/activation.h"
#include "framework/builder/math.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/executor/executor.h"
#include "framework/io/npz.h"
#include "framework/onnx/import.h"
#include "framework/plan/plan.h"
#include "tests/harness/array_tensor.h"

namespace skiff::onnx_tests {
namespace {

using ::testing::Contains;
using ::testing::Pair;
using Counts = std::map<std::string, int>;

// How often instructions of these types are in the plan; of their gradients as often in training.
struct Fixture {
  std::string name;
  Counts fused;
};

std::vector<Fixture> Fixtures() {
  // A layer of an encoder or decoder: a norm behind each residual, a bias for each projection that
  // nothing else takes.
  const auto transformer = [](int linear) -> Counts {
    return {{"multihead_attention", 1},
            {"bias_gelu", 1},
            {"bias_dropout_residual_layer_norm", 2},
            {"layer_norm", 1},
            {"linear", linear}};
  };
  return {{"bert_eager_11", transformer(3)},
          {"bert_sdpa_14", transformer(3)},
          {"bert_sdpa_18", transformer(3)},
          {"bert_sdpa_23", transformer(3)},
          {"gpt2_eager_17", transformer(1)},
          {"gpt2_sdpa_20", transformer(1)},
          {"llama_eager_18", {{"multihead_attention", 1}, {"rms_norm", 3}, {"swish", 1}}},
          {"vit_17", {{"multihead_attention", 1}, {"hard_swish", 1}, {"mish", 1}, {"linear", 3}}},
          {"resnet_13", {{"conv2d", 6}}},
          {"resnet_18", {{"conv2d", 6}}}};
}

class ImportedFixture : public ::testing::TestWithParam<Fixture> {
 protected:
  ImportedFixture() {
    const std::string path = StrCat("tests/onnx/fixtures/", GetParam().name);
    model_ = ImportOnnx(path + ".onnx", &executor_.scope());
    arrays_ = ReadNpz(path + ".npz");
    for (const std::string& name : model_.feed_names) feeds_.emplace_back(name, arrays_.at(name));
  }

  // Appends a loss, its gradients and updates. Returns the loss.
  std::string MakeTraining() {
    // PyTorch keeps the speeds of the rotations as they are.
    for (const auto& var : model_.program->root()->vars()) {
      if (var->name.ends_with("inv_freq")) var->stop_gradient = true;
    }
    Program startup;
    const ProgramGuard guard(model_.program.get(), &startup);
    const Variable output(model_.program->root(), model_.fetch_names[0]);
    const Variable loss = layers::Mean(layers::Square(output));
    optimizer::Sgd({.learning_rate = 0.05}).Minimize(loss);
    executor_.Run(startup);
    return loss.name();
  }

  Counts InstructionsFor(const std::string& fetch) {
    Counts counts;
    BoundProgram bound = executor_.Compile(*model_.program).Bind(feeds_, {fetch});
    for (const auto& instruction : bound.plan().instructions) ++counts[instruction.op->type];
    return counts;
  }

  Executor executor_{Place::Cpu()};
  InferenceModel model_;
  TensorMap arrays_;
  FeedList feeds_;
};

TEST_P(ImportedFixture, ComputesWhatOnnxRuntimeDoes) {
  const Tensor output = executor_.Run(*model_.program, feeds_, model_.fetch_names)[0];
  const harness::Array expected = harness::ToArray(arrays_.at("expected"));
  double largest = 1;
  for (const double value : expected.values) largest = std::max(largest, std::abs(value));
  EXPECT_EQ(harness::FirstDifference(harness::ToArray(output), expected, 1e-6 * largest), "");
}

TEST_P(ImportedFixture, IsFused) {
  const Counts counts = InstructionsFor(model_.fetch_names[0]);
  for (const auto& [type, count] : GetParam().fused)
    EXPECT_THAT(counts, Contains(Pair(type, count)));
  for (const char* type : {"softmax", "erf", "tanh", "sigmoid", "batch_norm"}) {
    EXPECT_FALSE(counts.contains(type)) << type;
  }
}

TEST_P(ImportedFixture, IsFusedInTraining) {
  const Counts counts = InstructionsFor(MakeTraining());
  for (const auto& [type, count] : GetParam().fused) {
    EXPECT_THAT(counts, Contains(Pair(type, count)));
    // The gradient of a linear consists of ops for both of its parts.
    if (type == "linear") continue;
    EXPECT_THAT(counts, Contains(Pair(type + "_grad", count)));
  }
  for (const char* type : {"softmax_grad", "erf_grad", "tanh_grad", "sigmoid_grad"}) {
    EXPECT_FALSE(counts.contains(type)) << type;
  }
}

TEST_P(ImportedFixture, TrainsAsInPyTorch) {
  const std::string loss = MakeTraining();
  CompiledProgram step = executor_.Compile(*model_.program);
  std::vector<float> losses;
  for (int i = 0; i < 4; ++i) losses.push_back(step.Run(feeds_, {loss})[0].Item<float>());
  EXPECT_LT(losses.back(), losses.front());
  if (!arrays_.contains("losses")) return;
  const auto wanted = arrays_.at("losses").ToVector<float>();
  EXPECT_THAT(losses, ::testing::Pointwise(::testing::FloatNear(1e-5f), wanted));
}

INSTANTIATE_TEST_SUITE_P(Networks, ImportedFixture, ::testing::ValuesIn(Fixtures()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace skiff::onnx_tests
