// Loops whose gradients are in a later segment: an op between both has a result whose shape only a
// run can tell.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/dynamic_rnn.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/sequence.h"
#include "framework/builder/static_rnn.h"
#include "framework/builder/tensor_array_layers.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/tensor/tensor.h"
#include "tests/harness/sgd_training.h"

namespace skiff {
namespace {

constexpr int64_t kWidth = 3;

Tensor Numbers(const Shape& shape, int seed) {
  return harness::SmallNumbers(shape, seed, DType::kFloat64);
}

Tensor Mask(const std::vector<bool>& rows) {
  return Tensor::FromValues<bool>({static_cast<int64_t>(rows.size()), 1}, rows);
}

Variable Layer(const Variable& x, const std::string& name) {
  return layers::Tanh(layers::Fc(x, kWidth, {.param_attr = {.name = name}, .bias_attr = false}));
}

// Each row by the layer that the mask chooses.
Variable Choose(const Variable& x, const Variable& mask, const std::string& name) {
  layers::IfElse choice(mask);
  choice.IfTrue([&] { return Variables{Layer(choice.Input(x), name + "a")}; });
  choice.IfFalse([&] { return Variables{Layer(choice.Input(x), name + "b")}; });
  return choice.Outputs()[0];
}

// The same in one segment.
Variable ChooseByProducts(const Variable& x, const Variable& mask, const std::string& name) {
  const Variable chosen = layers::Cast(mask, DType::kFloat64);
  // In this order, which decides about the first values of parameters.
  const Variable a = Layer(x, name + "a");
  const Variable b = Layer(x, name + "b");
  return a * chosen + b * (1.0f - chosen);
}

using harness::TrainBySgd;
using Choice = std::function<Variable(const Variable&, const Variable&, const std::string&)>;
using Network = std::function<Variable(const Choice&)>;

void ExpectSame(const Network& network, const std::vector<FeedList>& batches) {
  const std::vector<double> found = TrainBySgd([&] { return network(Choose); }, batches);
  const std::vector<double> expected =
      TrainBySgd([&] { return network(ChooseByProducts); }, batches);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-12) << i;
}

Variable Rows() { return layers::Data("x", {-1, kWidth}, DType::kFloat64); }
Variable MaskOf(const char* name = "mask") { return layers::Data(name, {-1, 1}, DType::kBool); }
Variable LossOf(const Variable& x) { return layers::ReduceSum(layers::Square(x)); }

FeedList Batch(const std::vector<bool>& mask, const std::vector<bool>& second_mask) {
  return {{"x", Numbers({static_cast<int64_t>(mask.size()), kWidth}, 1)},
          {"mask", Mask(mask)},
          {"mask2", Mask(second_mask)}};
}

const std::vector<FeedList>& Batches() {
  static const std::vector<FeedList> kBatches = {
      Batch({true, false, false, true}, {false, false, true, true}),
      Batch({true, true, false, true}, {true, false, false, true}),
      Batch({true, true, false}, {true, false, true}),
      Batch({true, false, false, true}, {true, false, true, false})};
  return kBatches;
}

// x after n layers.
Variable Repeated(const Variable& x, const Variable& n) {
  return layers::WhileLoop(
      [&](const Variables& v) { return layers::LessThan(v[0], n); },
      [&](const Variables& v) {
        return Variables{layers::Scale(v[0], {.bias = 1.0f}), Layer(v[1] + x, "w")};
      },
      {layers::FillConstant({1}, DType::kInt64, 0.0), layers::Assign(x)})[1];
}

std::vector<FeedList> WithCounts(std::vector<FeedList> batches,
                                 const std::vector<int64_t>& counts) {
  for (size_t i = 0; i < batches.size(); ++i) {
    batches[i].emplace_back("n", Tensor::FromValues<int64_t>({1}, {counts[i]}));
  }
  return batches;
}

TEST(LoopSegments, TwoChoices) {
  ExpectSame(
      [](const Choice& choose) {
        const Variable x = Rows();
        const Variable first = MaskOf();
        const Variable second = MaskOf("mask2");
        return LossOf(choose(choose(Layer(x, "h"), first, "f"), second, "s"));
      },
      Batches());
}

// The second mask depends on what the first choice has made.
TEST(LoopSegments, AChoiceThatDependsOnAnother) {
  ExpectSame(
      [](const Choice& choose) {
        const Variable x = Rows();
        const Variable first = MaskOf();
        MaskOf("mask2");
        const Variable h = choose(Layer(x, "h"), first, "f");
        const Variable sums = layers::ReduceSum(h, {.dims = {1}, .keep_dim = true});
        const Variable zero = layers::FillConstant({1}, DType::kFloat64, 0.05);
        return LossOf(choose(h, layers::LessThan(sums, zero), "s"));
      },
      {Batch({true, false, false, true}, {}), Batch({true, true, false, true}, {})});
}

// A while leaves arrays to its gradient, and how often it ran.
TEST(LoopSegments, AChoiceBehindAWhile) {
  const Network network = [](const Choice& choose) {
    const Variable x = Rows();
    const Variable mask = MaskOf();
    MaskOf("mask2");
    const Variable n = layers::Data("n", {1}, DType::kInt64);
    return LossOf(choose(Repeated(x, n), mask, "f") + x);
  };
  ExpectSame(network, WithCounts(Batches(), {3, 1, 0, 5}));
}

// The gradient of what all iterations read is ragged as that is, whatever the batch before was.
TEST(LoopSegments, ARaggedGradient) {
  Program main, startup;
  Variable inverted, loss;
  {
    const ProgramGuard guard(&main, &startup);
    const Variable x = layers::Data("x", {-1, kWidth}, DType::kFloat64, {.lod_level = 1});
    const Variable mask = MaskOf();
    inverted = layers::SequenceReverse(Layer(x, "h"));
    const Variable two = layers::FillConstant({1}, DType::kInt64, 2.0);
    const Variable state = layers::WhileLoop(
        [&](const Variables& v) { return layers::LessThan(v[0], two); },
        [&](const Variables& v) {
          return Variables{layers::Scale(v[0], {.bias = 1.0f}),
                           Layer(v[1] + layers::SequencePool(inverted, "LAST"), "w")};
        },
        {layers::FillConstant({1}, DType::kInt64, 0.0), layers::SequencePool(x, "SUM")})[1];
    loss = LossOf(Choose(state, mask, "f"));
    optimizer::Sgd({.learning_rate = 0.1}).Minimize(loss);
  }
  Executor executor;
  executor.Run(startup);
  CompiledProgram step = executor.Compile(main);
  for (const std::vector<int64_t>& lengths :
       std::vector<std::vector<int64_t>>{{3, 1, 2}, {1, 4, 1}}) {
    Tensor x = Numbers({6, kWidth}, 1);
    x.set_lod({OffsetsOf(lengths)});
    const FeedList feeds = {{"x", x}, {"mask", Mask({true, false, true})}};
    EXPECT_EQ(step.Run(feeds, {inverted.name() + "@GRAD"})[0].lod(), x.lod());
  }
}

TEST(LoopSegments, TwoChoicesBehindAWhile) {
  const Network network = [](const Choice& choose) {
    const Variable x = Rows();
    const Variable first = MaskOf();
    const Variable second = MaskOf("mask2");
    const Variable n = layers::Data("n", {1}, DType::kInt64);
    return LossOf(choose(choose(Repeated(x, n), first, "f"), second, "s") + x);
  };
  ExpectSame(network, WithCounts(Batches(), {3, 1, 0, 5}));
}

TEST(LoopSegments, AChoiceBehindAStaticRnn) {
  ExpectSame(
      [](const Choice& choose) {
        const Variable x = Rows();
        const Variable mask = MaskOf();
        MaskOf("mask2");
        const Variable steps = layers::Stack({x, x * 0.5f, x * -1.0f}, 0);
        layers::StaticRnn rnn;
        rnn.Body([&] {
          const Variable now = rnn.StepInput(steps);
          const Variable before = rnn.Memory(x);
          const Variable state = Layer(now + before, "w");
          rnn.UpdateMemory(before, state);
          rnn.StepOutput(state);
        });
        const Variable last =
            layers::Slice(rnn.Outputs()[0], {.axes = {0}, .starts = {2}, .ends = {3}});
        return LossOf(choose(layers::Reshape(last, {-1, kWidth}), mask, "f"));
      },
      {Batches()[0], Batches()[1], Batches()[0]});
}

// Its rows differ from iteration to iteration.
TEST(LoopSegments, AChoiceBehindADynamicRnn) {
  const Network network = [](const Choice& choose) {
    const Variable x = layers::Data("x", {-1, kWidth}, DType::kFloat64, {.lod_level = 1});
    const Variable mask = MaskOf();
    layers::DynamicRnn rnn;
    rnn.Body([&] {
      const Variable now = rnn.StepInput(x);
      const Variable before = rnn.Memory({kWidth}, 0.0f, DType::kFloat64);
      const Variable state = Layer(now + before, "w");
      rnn.UpdateMemory(before, state);
      rnn.StepOutput(state);
    });
    return LossOf(choose(layers::SequencePool(rnn.Outputs()[0], "LAST"), mask, "f"));
  };
  std::vector<FeedList> batches;
  for (const std::vector<int64_t>& lengths :
       std::vector<std::vector<int64_t>>{{3, 1, 2}, {1, 4, 1}, {2, 2, 2}, {3, 1, 2}}) {
    int64_t rows = 0;
    for (const int64_t length : lengths) rows += length;
    Tensor x = Numbers({rows, kWidth}, static_cast<int>(batches.size()));
    x.set_lod({OffsetsOf(lengths)});
    batches.push_back({{"x", x}, {"mask", Mask({true, false, batches.size() % 2 == 0})}});
  }
  ExpectSame(network, batches);
}

// Only a run tells the shape of what the array becomes.
TEST(LoopSegments, AnArrayThatBecomesATensor) {
  const auto network = [](bool by_array) {
    const Variable x = layers::Data("x", {2, kWidth}, DType::kFloat64);
    if (!by_array) {
      const Variable first = Layer(x, "w");
      const Variable second = Layer(first, "w");
      return LossOf(layers::Stack({first, second, Layer(second, "w")}, 0));
    }
    const Variable states = layers::CreateArray(DType::kFloat64);
    const Variable three = layers::FillConstant({1}, DType::kInt64, 3.0);
    layers::WhileLoop([&](const Variables& v) { return layers::LessThan(v[0], three); },
                      [&](const Variables& v) {
                        const Variable state = Layer(v[1], "w");
                        layers::ArrayWrite(state, v[0], states);
                        return Variables{layers::Scale(v[0], {.bias = 1.0f}), state};
                      },
                      {layers::FillConstant({1}, DType::kInt64, 0.0), layers::Assign(x)});
    return LossOf(layers::ArrayToTensor(states, {.axis = 0, .stack = true}));
  };
  const std::vector<FeedList> batches(3, {{"x", Numbers({2, kWidth}, 4)}});
  const std::vector<double> found = TrainBySgd([&] { return network(true); }, batches);
  const std::vector<double> expected = TrainBySgd([&] { return network(false); }, batches);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-12) << i;
}

}  // namespace
}  // namespace skiff
