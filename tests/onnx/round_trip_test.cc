// Networks that were exported and imported again compute the same, are fused, and train.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "framework/base/str_cat.h"
#include "framework/builder/activation.h"
#include "framework/builder/math.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/executor/executor.h"
#include "framework/onnx/export.h"
#include "framework/onnx/import.h"
#include "framework/plan/plan.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/temp_directory.h"
#include "tests/onnx/networks.h"

namespace skiff::onnx_tests {
namespace {

using ::testing::Contains;
using ::testing::Not;

class RoundTrip : public ::testing::TestWithParam<Network> {
 protected:
  RoundTrip() {
    const std::string path = StrCat(directory_.path(), "/", GetParam().name, ".onnx");
    ExportOnnx(path, built_.feed_names, {built_.fetch}, *built_.program, built_.executor->scope());
    model_ = ImportOnnx(path, &executor_.scope());
    for (const std::string& name : model_.feed_names) {
      feeds_.emplace_back(name, built_.feeds.at(name));
    }
  }

  // The types of the instructions that the imported program becomes.
  std::vector<std::string> Instructions() {
    BoundProgram bound = executor_.Compile(*model_.program).Bind(feeds_, model_.fetch_names);
    std::vector<std::string> types;
    for (const auto& instruction : bound.plan().instructions) types.push_back(instruction.op->type);
    return types;
  }

  TempDirectory directory_;
  BuiltNetwork built_ = Build(GetParam());
  Executor executor_{Place::Cpu()};
  InferenceModel model_;
  FeedList feeds_;
};

TEST_P(RoundTrip, ComputesTheSame) {
  ASSERT_EQ(model_.fetch_names, std::vector{built_.fetch});
  const Tensor output = executor_.Run(*model_.program, feeds_, model_.fetch_names)[0];
  const harness::Array expected = harness::ToArray(built_.output);
  double largest = 1;
  for (const double value : expected.values) largest = std::max(largest, std::abs(value));
  EXPECT_EQ(harness::FirstDifference(harness::ToArray(output), expected, 1e-6 * largest), "");
}

TEST_P(RoundTrip, IsFused) {
  const std::vector<std::string> types = Instructions();
  const std::string& name = GetParam().name;
  const bool is_transformer = name == "ernie" || name == "gpt2" || name == "llama";
  EXPECT_THAT(types, Contains("multihead_attention").Times(is_transformer ? 2 : 0));
  if (is_transformer) {
    EXPECT_THAT(types, Not(Contains("softmax")));
    EXPECT_THAT(types, Contains("linear"));
  }
  if (name == "ernie" || name == "gpt2") {
    const int norms = name == "ernie" ? 5 : 4;
    EXPECT_THAT(types, Contains("bias_dropout_residual_layer_norm").Times(norms));
    EXPECT_THAT(types, Contains("bias_gelu").Times(2));
  }
  if (name == "llama") {
    EXPECT_THAT(types, Contains("rms_norm").Times(5));
    EXPECT_THAT(types, Contains("swish").Times(2));
  }
  if (GetParam().name.starts_with("resnet")) {
    EXPECT_THAT(types, Not(Contains("batch_norm")));
  }
}

TEST_P(RoundTrip, Trains) {
  const Network& network = GetParam();
  if (network.name == "vgg11" || network.name == "resnet50") GTEST_SKIP() << "as the smaller ones";
  Program startup;
  std::string loss;
  {
    const ProgramGuard guard(model_.program.get(), &startup);
    const Variable output(model_.program->root(), built_.fetch);
    const Variable mean = layers::Mean(layers::Square(output));
    optimizer::Sgd({.learning_rate = 1e-6}).Minimize(mean);
    loss = mean.name();
  }
  executor_.Run(startup);
  std::vector<float> losses;
  for (int step = 0; step < 3; ++step) {
    losses.push_back(executor_.Run(*model_.program, feeds_, {loss})[0].data<float>()[0]);
  }
  EXPECT_LT(losses[1], losses[0]);
  EXPECT_LT(losses[2], losses[1]);
}

INSTANTIATE_TEST_SUITE_P(Networks, RoundTrip, ::testing::ValuesIn(Networks()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace skiff::onnx_tests
