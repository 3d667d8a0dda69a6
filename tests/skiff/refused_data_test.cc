// Data that an op refuses in the middle of a training step leaves the parameters as they were, and
// what that costs is bounded by what a step can fail after.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "framework/ir/text.h"
#include "skiff/skiff.h"

namespace skiff {
namespace {

// An update of v comes before a gradient op whose indices are fed, as early_update would put it.
constexpr const char* kFedIndices = R"(program { block 0 {
  var "indices" int64 [2, 1]
  var "v@GRAD" float32 [2]
  var "rate" float32 [1]
  var "top@GRAD" float32 [2, 1]
  var "w@GRAD" float32 [2, 3]
  param "v" float32 [2] persistable
  param "w" float32 [2, 3] persistable
  {ParamOut: ["v"]} = sgd(Param: ["v"], Grad: ["v@GRAD"], LearningRate: ["rate"]) {op_role = 2}
  {"X@GRAD": ["w@GRAD"]} = top_k_grad(X: ["w"], Indices: ["indices"], "Out@GRAD": ["top@GRAD"])
      {k = 1, op_role = 1}
  {ParamOut: ["w"]} = sgd(Param: ["w"], Grad: ["w@GRAD"], LearningRate: ["rate"]) {op_role = 2}
} })";

std::map<std::string, std::vector<float>> Parameters(const Scope& scope) {
  return {{"v", scope.Get("v").ToVector<float>()}, {"w", scope.Get("w").ToVector<float>()}};
}

TEST(RefusedData, OfAGradientOpLeavesEveryParameterAsItWas) {
  Executor executor(Place::Cpu());
  executor.scope().Set("v", Tensor::FromValues<float>({2}, {1, 2}));
  executor.scope().Set("w", Tensor::FromValues<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  CompiledProgram program = executor.Compile(*ParseProgramText(kFedIndices));
  const auto run = [&](int64_t first, int64_t second) {
    program.Run({{"indices", Tensor::FromValues<int64_t>({2, 1}, {first, second})},
                 {"v@GRAD", Tensor::FromValues<float>({2}, {1, 1})},
                 {"rate", Tensor::FromValues<float>({1}, {0.5f})},
                 {"top@GRAD", Tensor::FromValues<float>({2, 1}, {1, 1})}},
                {});
  };
  const auto before = Parameters(executor.scope());
  EXPECT_THROW(run(0, 3), Error);
  EXPECT_EQ(Parameters(executor.scope()), before);
  run(0, 2);
  const std::map<std::string, std::vector<float>> after = {{"v", {0.5f, 1.5f}},
                                                           {"w", {0.5f, 2, 3, 4, 5, 5.5f}}};
  EXPECT_EQ(Parameters(executor.scope()), after);
}

// The forward pass has looked at ids and labels before anything is updated.
TEST(RefusedData, OfTheForwardPassCostsNoCopyOfParameters) {
  Program main;
  Program startup;
  Variable loss;
  {
    ProgramGuard guard(&main, &startup);
    const Variable ids = layers::Data("ids", {-1, 2}, DType::kInt64);
    const Variable label = layers::Data("label", {-1, 1}, DType::kInt64);
    const Variable words = layers::Embedding(ids, {.rows = 10, .width = 4});
    loss = layers::Mean(layers::SoftmaxWithCrossEntropy(layers::Fc(words, 3), label));
    optimizer::Sgd({.learning_rate = 0.1f}).Minimize(loss);
  }
  Executor executor(Place::Cpu());
  executor.Run(startup);
  CompiledProgram program = executor.Compile(main);
  const auto feeds = [](int64_t last_id) -> FeedList {
    return {{"ids", Tensor::FromValues<int64_t>({2, 2}, {1, 2, 3, last_id})},
            {"label", Tensor::FromValues<int64_t>({2, 1}, {0, 2})}};
  };
  EXPECT_EQ(program.Bind(feeds(4), {loss.name()}).statistics().rollback_bytes, 0);
  const auto parameters = [&] {
    std::map<std::string, std::vector<float>> values;
    for (const std::string& name : executor.scope().Names()) {
      const Tensor& tensor = executor.scope().Get(name);
      if (tensor.dtype() == DType::kFloat32) values[name] = tensor.ToVector<float>();
    }
    return values;
  };
  const auto before = parameters();
  EXPECT_THROW(program.Run(feeds(10), {loss.name()}), Error);
  EXPECT_EQ(parameters(), before);
  program.Run(feeds(4), {loss.name()});
  EXPECT_NE(parameters(), before);
}

}  // namespace
}  // namespace skiff
