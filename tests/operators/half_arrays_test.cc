// Arrays of half, and ragged tensors of half whose rows only a run knows. No pass widens the ops
// that make them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/autodiff/append_backward.h"
#include "framework/base/error.h"
#include "framework/builder/beam_search.h"
#include "framework/builder/data.h"
#include "framework/builder/dynamic_rnn.h"
#include "framework/builder/math.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_array_layers.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/op/grad.h"
#include "framework/op/grad_name.h"
#include "memory/places.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/beam_search_loop.h"
#include "tests/harness/cuda_place.h"

namespace skiff {
namespace {

using harness::Ragged;
using harness::Values;
using ::testing::ElementsAre;

Variable Index(int64_t value) { return layers::FillConstant({1}, DType::kInt64, double(value)); }

Variable GradientOf(const Variable& loss, const Variable& x) {
  AppendBackward(DefaultOpRegistry(), &DefaultMainProgram(), loss.name());
  return {DefaultMainProgram().root(), GradName(x.name())};
}

class HalfArraysTest : public ::testing::TestWithParam<std::tuple<DType, Place>> {
 protected:
  void SetUp() override {
    try {
      AllocatorOf(std::get<Place>(GetParam()));
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }

  DType dtype() const { return std::get<DType>(GetParam()); }

  // Builds a program of x and runs it. The arrays are of `dtype` unless they have a fixed one.
  static std::vector<Tensor> Run(const std::function<FetchList()>& build,
                                 const std::vector<std::pair<std::string, harness::Array>>& feeds,
                                 DType dtype, Place place) {
    Program main, startup;
    FetchList fetches;
    {
      const ProgramGuard guard(&main, &startup);
      fetches = build();
    }
    FeedList tensors;
    for (const auto& [name, array] : feeds) {
      tensors.emplace_back(name, ToTensor(array, DTypeIn(array, dtype)));
    }
    CompileOptions options;
    options.memory.poison_dead_memory = true;
    options.max_loop_iterations = 100;
    Executor executor(place);
    return executor.Compile(main, options).Run(tensors, fetches);
  }

  // Returns what a run in the dtype of the test gives.
  std::vector<Tensor> Run(const std::function<FetchList()>& build,
                          const std::vector<std::pair<std::string, harness::Array>>& feeds) const {
    return Run(build, feeds, dtype(), std::get<Place>(GetParam()));
  }

  std::vector<double> NumbersOf(const Tensor& tensor) const {
    EXPECT_EQ(tensor.dtype(), dtype());
    return harness::ToArray(tensor).values;
  }
};

TEST_P(HalfArraysTest, AddUpGradients) {
  const auto found = Run(
      [&] {
        const Variable x =
            layers::Data("x", {-1, 2}, dtype(), {.lod_level = 0, .stop_gradient = false});
        const Variable array = layers::CreateArray(dtype());
        layers::ArrayWrite(x * 1.0f, Index(0), array);
        layers::ArrayWrite(x * 2.0f, Index(1), array);
        const Variable first = layers::ArrayRead(array, Index(0));
        const Variable large = layers::ArrayRead(array, Index(0)) * 2048.0f;
        const Variable joined = layers::ArrayToTensor(array, {.axis = 1});
        const Variable weights = layers::Data("weights", {1, 4}, dtype());
        const Variable gradient =
            GradientOf(layers::ReduceSum(joined * weights) + layers::ReduceSum(first) +
                           layers::ReduceSum(large),
                       x);
        return FetchList{joined, gradient};
      },
      {{"x", Values({1, 2}, {1, -3})}, {"weights", Values({1, 4}, {1, 2, 4, 8})}});
  EXPECT_THAT(NumbersOf(found[0]), ElementsAre(1, -3, 2, -6));
  // 2048 + 1 + w: each sum is rounded, and so is that with the gradient of the other element, 2 *
  // w.
  const bool is_float16 = dtype() == DType::kFloat16;
  EXPECT_THAT(NumbersOf(found[1]), is_float16 ? ElementsAre(2056, 2068) : ElementsAre(2048, 2064));
}

// The steps of sequences: cut, in the order of a rank table, fewer and fewer, and put together.
TEST_P(HalfArraysTest, HoldTheStepsOfSequences) {
  const auto in = [](DType dtype) {
    return [dtype] {
      const layers::DataOptions ragged = {.lod_level = 1, .stop_gradient = false};
      const Variable x = layers::Data("x", {-1, 3}, dtype, ragged);
      const Variable initial = layers::Data("initial", {-1, 3}, dtype, {.stop_gradient = false});
      const Variable weights = layers::Data("weights", {-1, 3}, dtype, {.lod_level = 1});
      layers::DynamicRnn rnn;
      rnn.Body([&] {
        const Variable step = rnn.StepInput(x);
        const Variable before = rnn.Memory(initial);
        const Variable state = step - before;
        rnn.UpdateMemory(before, state);
        rnn.StepOutput(state);
      });
      const Variable states = rnn.Outputs()[0];
      const Variable gradient = GradientOf(layers::ReduceSum(states * weights), x);
      return FetchList{states, gradient,
                       Variable(DefaultMainProgram().root(), GradName(initial.name()))};
    };
  };
  const auto small = [](const Shape& shape, uint64_t seed) {
    harness::Array array = harness::Integers(shape, seed, -4, 5);
    array.fixed_dtype = false;
    return array;
  };
  const std::vector<std::pair<std::string, harness::Array>> feeds = {
      {"x", Ragged(small({7, 3}, 1), {2, 4, 1})},
      {"initial", small({3, 3}, 2)},
      {"weights", Ragged(small({7, 3}, 3), {2, 4, 1})}};
  const auto expected = Run(in(DType::kFloat64), feeds, DType::kFloat64, Place::Cpu());
  const auto found = Run(in(dtype()), feeds);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(NumbersOf(found[i]), expected[i].ToVector<double>()) << i;
    EXPECT_EQ(found[i].lod(), expected[i].lod()) << i;
  }
}

TEST_P(HalfArraysTest, HoldTheScoresOfABeamSearch) {
  constexpr int64_t kTokens = 4;
  const auto in = [](DType dtype) {
    return [dtype] {
      const layers::BeamSentences sentences = harness::BeamSearchLoop(
          {.dtype = dtype, .tokens = kTokens, .most = 3, .beam_size = 2, .end_id = 1});
      return FetchList{sentences.ids, sentences.scores};
    };
  };
  const std::vector<std::pair<std::string, harness::Array>> feeds = {
      {"table", Values({kTokens, kTokens},
                       {0.5, -1, 1, 0, 0, 0, 0, 0, -1, 0.25, 0.5, 1, 1.5, -0.5, -1, 0.75})},
      {"first", Values({1, kTokens}, {0.25, -0.75, 0.5, -0.25})},
      {"ids", Ragged(Values({1, 1}, {0}, DType::kInt64), {1}, {1})},
      {"scores", Ragged(Values({1, 1}, {0}), {1}, {1})}};
  const auto expected = Run(in(DType::kFloat64), feeds, DType::kFloat64, Place::Cpu());
  const auto found = Run(in(dtype()), feeds);
  EXPECT_EQ(found[0].ToVector<int64_t>(), expected[0].ToVector<int64_t>());
  EXPECT_EQ(found[1].lod(), expected[1].lod());
  const std::vector<double> scores = NumbersOf(found[1]);
  EXPECT_THAT(scores, testing::Pointwise(testing::DoubleNear(0.1), expected[1].ToVector<double>()));
}

INSTANTIATE_TEST_SUITE_P(OnEveryPlace, HalfArraysTest,
                         ::testing::Combine(::testing::Values(DType::kFloat16, DType::kBFloat16),
                                            ::testing::Values(Place::Cpu(), harness::CudaPlace())));

}  // namespace
}  // namespace skiff
