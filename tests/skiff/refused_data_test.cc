// Data that an op refuses in the middle of a training step leaves the parameters as they were, and
// what that costs is bounded by what a step can fail after.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "framework/ir/text.h"
#include "framework/op/arguments.h"
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

// Updates v before a backward op on an array, whose index is fed. With j = 1, `op` makes r.
std::string UpdateBefore(const std::string& op) {
  return R"(program { block 0 {
    var i int64 [1]
    var j int64 [1]
    var three float32 [3]
    var two float32 [2]
    var a lod_tensor_array float32 [-1]
    var r float32 [-1]
    param v float32 [2] persistable
    {Out: [three]} = fill_constant() {shape = longs [3], dtype = 5, value = 1.0}
    {Out: [two]} = fill_constant() {shape = longs [2], dtype = 5, value = 1.0}
    {Out: [a]} = write_to_array(X: [three], I: [i]) {op_role = 1}
    {Out: [v]} = elementwise_add(X: [v], Y: [two]) {op_role = 2}
    )" + op +
         " } }";
}

// A role is a claim of the file: such an op may refuse what no forward op has seen.
TEST(RefusedData, OfABackwardOpOnAnArrayLeavesEveryParameterAsItWas) {
  const std::vector<std::string> ops = {
      R"({Out: [a]} = write_to_array(X: [two], I: [j]) {op_role = 1}
         {Out: [r]} = read_from_array(X: [a], I: [j]) {op_role = 1})",
      R"({Out: [a]} = write_to_array(X: [two], I: [i]) {op_role = 0}
         {Out: [r]} = read_from_array(X: [a], I: [j]) {op_role = 1})"};
  for (const std::string& op : ops) {
    SCOPED_TRACE(op);
    Executor executor(Place::Cpu());
    executor.scope().Set("v", Tensor::FromValues<float>({2}, {1, 2}));
    CompiledProgram program = executor.Compile(*ParseProgramText(UpdateBefore(op)));
    const auto run = [&](int64_t i, int64_t j) {
      program.Run({{"i", Tensor::FromValues<int64_t>({1}, {i})},
                   {"j", Tensor::FromValues<int64_t>({1}, {j})}},
                  {"r"});
      return executor.scope().Get("v").ToVector<float>();
    };
    EXPECT_THROW(run(0, op == ops[0] ? 0 : 7), Error);
    EXPECT_EQ(executor.scope().Get("v").ToVector<float>(), std::vector<float>({1, 2}));
    EXPECT_EQ(run(1, op == ops[0] ? 0 : 1), std::vector<float>({2, 3}));
  }
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
    loss = layers::Mean(
        layers::SoftmaxWithCrossEntropy(layers::Fc(words, 3, {.num_flatten_dims = 1}), label));
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
