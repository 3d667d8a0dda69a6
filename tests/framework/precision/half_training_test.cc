// Networks of all kinds train in bfloat16 as they do in float32: the loss of each of the first
// steps is within 2 % of that of float32, with the default passes and with those that make long
// lists of parameters.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/dynamic_rnn.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/named_optimizer.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/sequence.h"
#include "framework/builder/static_rnn.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/transpiler/pass.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/ragged_feeds.h"
#include "tests/harness/sgd_training.h"

namespace skiff {
namespace {

using harness::SmallNumbers;

constexpr int kSteps = 5;
constexpr int64_t kWords = 12;

// What is half.
struct Counts {
  int64_t ops = 0;
  int64_t parameters = 0;
  int64_t casts = 0;

  friend bool operator==(const Counts&, const Counts&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Counts& counts) {
    return out << counts.ops << " ops, " << counts.parameters << " parameters, " << counts.casts
               << " casts";
  }
};

struct Network {
  std::string name;
  std::function<Variable()> loss;
  FeedList feeds;
  Counts with_parameters;  // with PrecisionLevel::kParameters
  Counts with_casts;       // with PrecisionLevel::kCasts
  int64_t merged_steps = 1;
  Recompute recompute = Recompute::kNothing;

  friend std::ostream& operator<<(std::ostream& out, const Network& network) {
    return out << network.name;
  }
};

// The mean square of what a layer makes of x, less 1.
Variable Loss(const Variable& x) {
  const bool is_matrix = x.dims().size() == 2;
  const Variable out = layers::Fc(x, 1, {.num_flatten_dims = is_matrix ? 1 : 2});
  return layers::Mean(layers::Square(out + -1.0));
}

Variable Cell(const Variable& x, const Variable& before) {
  return layers::Tanh(layers::Fc(layers::Concat({x, before}, 1), 4));
}

Variable StaticRnnLoss() {
  const Variable xs = layers::Data("xs", {6, 3, 8});
  const Variable first = layers::FillConstant({3, 4}, DType::kFloat32, 0.0);
  layers::StaticRnn rnn;
  rnn.Body([&] {
    const Variable x = rnn.StepInput(xs);
    const Variable before = rnn.Memory(first);
    const Variable state = Cell(x, before);
    rnn.UpdateMemory(before, state);
    rnn.StepOutput(state);
  });
  return Loss(rnn.Outputs()[0]);
}

// The outputs of the loop are read in float32 alone, after the loop.
Variable RnnReadInFloat32Loss() {
  const Variable xs = layers::Data("xs", {6, 3, 8});
  layers::StaticRnn rnn;
  rnn.Body([&] { rnn.StepOutput(layers::Fc(rnn.StepInput(xs), 4)); });
  return layers::Mean(layers::Square(rnn.Outputs()[0] + -1.0));
}

Variable CountUp(const Variable& x, int64_t times,
                 const std::function<Variable(const Variable&)>& step) {
  const Variable end = layers::FillConstant({1}, DType::kInt64, static_cast<double>(times));
  const Variable zero = layers::FillConstant({1}, DType::kInt64, 0.0);
  return layers::WhileLoop([&](const Variables& v) { return layers::LessThan(v[0], end); },
                           [&](const Variables& v) {
                             return Variables{layers::Increment(layers::Assign(v[0])), step(v[1])};
                           },
                           {zero, x})[1];
}

Variable WhileLoss() {
  const Variable x = layers::Fc(layers::Data("x", {4, 8}), 8);
  const Variable weights = layers::CreateParameter({8, 8}, DType::kFloat32, {.name = "again"});
  return Loss(CountUp(
      x, 3, [&](const Variable& state) { return layers::Tanh(layers::MatMul(state, weights)); }));
}

Variable ConditionLoss() {
  const Variable x = layers::Fc(layers::Data("x", {4, 8}), 8);
  const Variable flag = layers::FillConstant({1}, DType::kBool, 1.0);
  return Loss(layers::Cond(
      flag, [&] { return Variables{layers::Fc(layers::Tanh(x), 8)}; },
      [&] { return Variables{layers::Relu(x)}; })[0]);
}

// A loop in a branch in a loop.
Variable NestedLoss() {
  const Variable xs = layers::Data("xs", {6, 3, 8});
  const Variable first = layers::FillConstant({3, 4}, DType::kFloat32, 0.0);
  layers::StaticRnn rnn;
  rnn.Body([&] {
    const Variable x = rnn.StepInput(xs);
    const Variable before = rnn.Memory(first);
    const Variable state = Cell(x, before);
    const Variable flag = layers::FillConstant({1}, DType::kBool, 1.0);
    const Variable more = layers::Cond(
        flag,
        [&] {
          return Variables{
              CountUp(state, 2, [](const Variable& y) { return layers::Tanh(layers::Fc(y, 4)); })};
        },
        [&] { return Variables{layers::Relu(state)}; })[0];
    rnn.UpdateMemory(before, more);
    rnn.StepOutput(layers::Scale(more, {.scale = 1.5f}));
  });
  return Loss(rnn.Outputs()[0]);
}

Variable DynamicRnnLoss(bool is_sparse) {
  const Variable words = layers::Data("words", {-1}, DType::kInt64, {.lod_level = 1});
  const Variable x = layers::Embedding(words, {.rows = kWords, .width = 8, .is_sparse = is_sparse});
  layers::DynamicRnn rnn;
  rnn.Body([&] {
    const Variable step = rnn.StepInput(x);
    const Variable before = rnn.Memory({4}, 0.0f);
    const Variable state = Cell(step, before);
    rnn.UpdateMemory(before, state);
    rnn.StepOutput(state);
  });
  return Loss(layers::SequencePool(rnn.Outputs()[0], "SUM"));
}

Variable SharedTableLoss() {
  const Variable ids = layers::Data("ids", {5, 2}, DType::kInt64);
  const Variable x =
      layers::Embedding(ids, {.rows = kWords, .width = 8, .param_attr = {.name = "table"}});
  const Variable hidden = layers::Fc(x, 8, {.num_flatten_dims = 2, .act = "tanh"});
  const Variable logits =
      layers::MatMul(hidden, Variable(DefaultMainProgram().root(), "table"), {.transpose_y = true});
  return Loss(layers::Softmax(logits)) + layers::Mean(layers::Square(logits + -1.0));
}

Variable SparseLookupLoss() {
  const Variable ids = layers::Data("ids", {5, 2}, DType::kInt64);
  return Loss(layers::Embedding(ids, {.rows = kWords, .width = 8, .is_sparse = true}));
}

Variable DenseLoss() {
  Variable x = layers::Data("x", {4, 8});
  for (int i = 0; i < 3; ++i) x = layers::Tanh(layers::Fc(x, 8));
  return Loss(layers::LayerNorm(x));
}

FeedList Matrix() { return {{"x", SmallNumbers({4, 8}, 1)}}; }
FeedList Sequence() { return {{"xs", SmallNumbers({6, 3, 8}, 2)}}; }
FeedList Ids(const Shape& shape) {
  std::mt19937_64 random(3);
  return {{"ids", harness::RandomIds(shape, kWords, &random)}};
}
FeedList Words() {
  std::mt19937_64 random(4);
  return {{"words", harness::RaggedIds({{3, 1, 5}}, kWords, &random)}};
}

// Each network casts the feed that it multiplies, unless it looks up words, and the difference
// whose square is float32. Casts of parameters are added to these. float32 are the square, the
// mean, and what is named here:
// - A recurrent layer joins its memory to a larger feed in float32, and casts it back. It casts the
//   first memory, too.
// - A dynamic one carries its memory in float32.
// - Lookups, if their tables are float32.
std::vector<Network> Networks() {
  constexpr Counts kDense = {.ops = 13, .parameters = 8, .casts = 2};  // two of a norm stay float32
  constexpr Counts kDenseCasts = {.ops = 13, .casts = 10};
  constexpr Counts kStaticRnn = {.ops = 8, .parameters = 4, .casts = 4};
  constexpr Counts kStaticRnnCasts = {.ops = 8, .casts = 8};
  constexpr Counts kDynamicRnn = {.ops = 13, .parameters = 5, .casts = 3};
  constexpr Counts kDynamicRnnCasts = {.ops = 9, .casts = 7};
  constexpr Counts kSparse = {.ops = 4, .parameters = 3, .casts = 1};
  constexpr Counts kSparseCasts = {.ops = 3, .casts = 4};
  return {
      {"dense", DenseLoss, Matrix(), kDense, kDenseCasts},
      {"recomputed", DenseLoss, Matrix(), kDense, kDenseCasts, 1, Recompute::kLeastMemory},
      {"merged_gradients", DenseLoss, Matrix(), kDense, kDenseCasts, 2},
      {"static_rnn", StaticRnnLoss, Sequence(), kStaticRnn, kStaticRnnCasts},
      {"static_rnn_recomputed", StaticRnnLoss, Sequence(), kStaticRnn, kStaticRnnCasts, 1,
       Recompute::kLeastMemory},
      {"rnn_read_in_float32",
       RnnReadInFloat32Loss,
       Sequence(),
       {.ops = 4, .parameters = 2, .casts = 2},
       {.ops = 4, .casts = 4}},
      {"while_loop",
       WhileLoss,
       Matrix(),
       {.ops = 10, .parameters = 5, .casts = 2},
       {.ops = 10, .casts = 7}},
      {"condition",
       ConditionLoss,
       Matrix(),
       {.ops = 12, .parameters = 6, .casts = 2},
       {.ops = 12, .casts = 8}},
      {"nested",
       NestedLoss,
       Sequence(),
       {.ops = 19, .parameters = 6, .casts = 4},
       {.ops = 19, .casts = 10}},
      {"dynamic_rnn", [] { return DynamicRnnLoss(false); }, Words(), kDynamicRnn, kDynamicRnnCasts},
      {"dynamic_rnn_sparse", [] { return DynamicRnnLoss(true); }, Words(), kDynamicRnn,
       kDynamicRnnCasts},
      {"shared_table",
       SharedTableLoss,
       Ids({5, 2}),
       {.ops = 10, .parameters = 5, .casts = 2},
       {.ops = 9, .casts = 8}},
      {"sparse_lookup", SparseLookupLoss, Ids({5, 2}), kSparse, kSparseCasts},
      {"sparse_merged_gradients", SparseLookupLoss, Ids({5, 2}), kSparse, kSparseCasts, 2},
  };
}

// Trains, and returns the losses. Expects the network's counts if it computes in half.
std::vector<double> Train(const Network& network, const optimizer::NamedOptimizer& named,
                          const PrecisionOptions& precision,
                          const std::vector<std::string>& more_passes) {
  Program main, startup;
  main.seed = startup.seed = 7;
  Variable loss;
  {
    const ProgramGuard guard(&main, &startup);
    loss = network.loss();
    optimizer::MinimizeOptions options;
    options.precision = precision;
    options.gradient_merge.steps = network.merged_steps;
    const optimizer::Minimized minimized = optimizer::MakeOptimizer(named)->Minimize(loss, options);
    if (minimized.half) {
      const HalfReport& half = *minimized.half;
      EXPECT_EQ(
          (Counts{half.half_ops, half.half_parameters, std::ssize(half.casts)}),
          precision.level == PrecisionLevel::kCasts ? network.with_casts : network.with_parameters);
    }
  }
  CompileOptions options;
  options.passes.also = more_passes;
  options.memory.recompute = network.recompute;
  options.memory.poison_dead_memory = true;
  Executor executor(Place::Cpu());
  executor.Run(startup);
  CompiledProgram step = executor.Compile(main, options);
  std::vector<double> losses;
  for (int i = 0; i < kSteps * network.merged_steps; ++i) {
    losses.push_back(step.Run(network.feeds, {loss})[0].Item<float>());
  }
  return losses;
}

void ExpectTrainsAsInFloat32(const Network& network, const optimizer::NamedOptimizer& named) {
  const std::vector<double> expected = Train(network, named, {}, {});
  EXPECT_LT(expected.back(), expected.front());
  const std::vector<std::vector<std::string>> passes = {
      {}, {"fuse_optimizer", "flatten_parameters"}, {"merge_optimizer"}};
  for (const PrecisionLevel level : {PrecisionLevel::kParameters, PrecisionLevel::kCasts}) {
    for (const auto& more : passes) {
      SCOPED_TRACE(StrCat(level == PrecisionLevel::kCasts ? "casts" : "parameters", ", passes ",
                          Join(more, ", ")));
      const std::vector<double> found =
          Train(network, named, {.dtype = DType::kBFloat16, .level = level}, more);
      EXPECT_NE(found, expected);
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_NEAR(found[i], expected[i], 0.02 * expected[0]) << "step " << i;
      }
    }
  }
}

class NetworksInHalf : public ::testing::TestWithParam<Network> {};

TEST_P(NetworksInHalf, TrainAsInFloat32) {
  ExpectTrainsAsInFloat32(GetParam(), {.name = "sgd", .learning_rate = 0.02});
}

INSTANTIATE_TEST_SUITE_P(Each, NetworksInHalf, ::testing::ValuesIn(Networks()),
                         [](const auto& info) { return info.param.name; });

class OptimizersInHalf : public ::testing::TestWithParam<std::string> {};

TEST_P(OptimizersInHalf, TrainAsInFloat32) {
  ExpectTrainsAsInFloat32(Networks()[0], {.name = GetParam(), .learning_rate = 0.002});
}

INSTANTIATE_TEST_SUITE_P(Each, OptimizersInHalf, ::testing::ValuesIn(optimizer::OptimizerNames()),
                         [](const auto& info) { return info.param; });

// In bfloat16, 256 + 1 is 256. The gradient of weights that a loop reads in 1000 iterations is
// nevertheless the sum of all terms, rounded once.
TEST(SumsOverIterations, AreRoundedOnce) {
  constexpr int64_t kIterations = 1000;
  constexpr int64_t kWidth = 8;
  Tensor xs = SmallNumbers({kIterations, 1, kWidth}, 5);
  for (float& x : xs.values<float>()) x = 1 + 0.5f * x;
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
    Program main, startup;
    const ProgramGuard guard(&main, &startup);
    layers::StaticRnn rnn;
    const Variable all = layers::Data("xs", {kIterations, 1, kWidth});
    rnn.Body([&] {
      rnn.StepOutput(
          layers::Fc(rnn.StepInput(all), 1, {.param_attr = {.name = "w"}, .bias_attr = false}));
    });
    const Variable loss = layers::ReduceSum(rnn.Outputs()[0]);
    const LossScaling unscaled{.initial = 1, .is_dynamic = false};
    optimizer::Sgd({.learning_rate = 0.0})
        .Minimize(loss, {.precision = {.dtype = dtype, .loss_scaling = unscaled}});
    std::vector<double> sums(kWidth);
    const std::vector<double> rounded = harness::ToArray(harness::Cast(xs, dtype)).values;
    for (size_t i = 0; i < rounded.size(); ++i) sums[i % kWidth] += rounded[i];
    const Tensor expected = harness::Cast(Tensor::FromValues<double>({kWidth, 1}, sums), dtype);
    for (const bool has_passes : {false, true}) {
      CompileOptions options;
      if (!has_passes) options.passes.skip = DefaultPlanPasses();
      Executor executor(Place::Cpu());
      executor.Run(startup);
      const Tensor found = executor.Compile(main, options).Run({{"xs", xs}}, {"w@GRAD"})[0];
      EXPECT_EQ(found.dtype(), dtype);
      EXPECT_EQ(harness::ToArray(found).values, harness::ToArray(expected).values);
    }
  }
}

}  // namespace
}  // namespace skiff
