#include "framework/builder/tagging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/builder/data.h"
#include "framework/builder/gradients.h"
#include "framework/builder/math.h"
#include "framework/builder/program_guard.h"
#include "framework/executor/executor.h"
#include "framework/ir/program.h"
#include "framework/tensor/tensor.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

class TaggingLayers : public ::testing::Test {
 protected:
  // Two sequences of 1 and 2 rows, ragged.
  template <typename T>
  Variable Feed(const std::string& name, const std::vector<T>& values, int64_t width) {
    Tensor tensor = Tensor::FromValues<T>({3, width}, values);
    tensor.set_lod({OffsetsOf(std::vector<int64_t>{1, 2})});
    feeds_.emplace_back(name, tensor);
    return layers::Data(name, {-1, width}, tensor.dtype(), {.lod_level = 1});
  }
  template <typename T>
  Variable FeedDense(const std::string& name, std::vector<int64_t> dims,
                     const std::vector<T>& values) {
    const Tensor tensor = Tensor::FromValues<T>(Shape(dims), values);
    feeds_.emplace_back(name, tensor);
    return layers::Data(name, dims, tensor.dtype());
  }

  std::vector<Tensor> Run(const std::vector<Variable>& fetches) {
    Executor executor;
    executor.Run(startup_);
    return executor.Compile(main_).Run(feeds_, {fetches.begin(), fetches.end()});
  }

  Program main_, startup_;
  ProgramGuard guard_{&main_, &startup_};
  FeedList feeds_;
};

// Transitions of 0: the rows are independent of each other.
const ParamAttr kZeros = {.name = "crf", .initializer = initializer::Constant(0)};

TEST_F(TaggingLayers, CrfScoresAndFindsTags) {
  const Variable emission = Feed<float>("emission", {0, 0, 3, 0, 0, 1}, 2);
  const Variable tags = Feed<int64_t>("tags", {1, 0, 0}, 1);
  const Variable transitions = layers::CreateParameter({4, 2}, DType::kFloat32, kZeros);
  const Variable loss =
      layers::LinearChainCrf(emission, tags, {.param_attr = {.shared = transitions}});
  const Variable path = layers::CrfDecoding(emission, {.param_attr = {.name = "crf"}});
  const Variable right =
      layers::CrfDecoding(emission, {.tags = tags, .param_attr = {.shared = transitions}});
  const auto found = Run({loss, path, right});
  const float of_second = std::log1p(std::exp(-3.0f)) + std::log1p(std::exp(1.0f));
  EXPECT_THAT(found[0].ToVector<float>(),
              ElementsAre(FloatNear(std::log(2.0f), 1e-6f), FloatNear(of_second, 1e-6f)));
  EXPECT_THAT(found[1].ToVector<int64_t>(), ElementsAre(0, 0, 1));
  EXPECT_EQ(found[1].lod(), feeds_[0].second.lod());
  EXPECT_THAT(found[2].ToVector<int64_t>(), ElementsAre(0, 1, 0));
}

TEST_F(TaggingLayers, CrfTakesPaddedSequences) {
  const Variable emission = FeedDense<float>("emission", {2, 2, 2}, {0, 0, 9, 9, 3, 0, 0, 1});
  const Variable tags = FeedDense<int64_t>("tags", {2, 2}, {1, 7, 0, 0});
  const Variable length = FeedDense<int64_t>("length", {2}, {1, 2});
  const Variable loss =
      layers::LinearChainCrf(emission, tags, {.length = length, .param_attr = kZeros});
  const Variable path =
      layers::CrfDecoding(emission, {.length = length, .param_attr = {.name = "crf"}});
  const auto found = Run({loss, path});
  EXPECT_EQ(loss.dims(), (std::vector<int64_t>{2, 1}));
  EXPECT_NEAR(found[0].ToVector<float>()[0], std::log(2.0f), 1e-6f);
  EXPECT_THAT(found[1].ToVector<int64_t>(), ElementsAre(0, 0, 0, 1));
}

TEST_F(TaggingLayers, TransitionsGetAGradient) {
  const Variable emission = Feed<float>("emission", {0, 0, 0, 0, 0, 0}, 2);
  const Variable tags = Feed<int64_t>("tags", {1, 0, 0}, 1);
  const Variable transitions = layers::CreateParameter({4, 2}, DType::kFloat32, kZeros);
  const Variable loss =
      layers::Mean(layers::LinearChainCrf(emission, tags, {.param_attr = {.shared = transitions}}));
  const auto found = Run(Gradients(loss, {transitions}));
  // Both starts and stops have one of each tag; one step of the four has the label.
  EXPECT_THAT(found[0].ToVector<float>(),
              ElementsAre(0, 0, 0, 0, FloatNear(-0.375f, 1e-6f), FloatNear(0.125f, 1e-6f),
                          FloatNear(0.125f, 1e-6f), FloatNear(0.125f, 1e-6f)));
}

TEST_F(TaggingLayers, TransitionsStartAsOtherWeights) {
  const Variable emission = Feed<float>("emission", {0, 0, 0, 0, 0, 0}, 2);
  const Variable tags = Feed<int64_t>("tags", {1, 0, 0}, 1);
  layers::LinearChainCrf(emission, tags, {.name = "crf"});
  Executor executor;
  executor.Run(startup_);
  const std::vector<float> values = executor.scope().Get("crf.w_0").ToVector<float>();
  ASSERT_EQ(values.size(), 8U);
  const float limit = std::sqrt(6.0f / (4 + 2));
  for (const float value : values) EXPECT_LE(std::abs(value), limit);
  EXPECT_NE(values[0], values[7]);
}

// Sums of 1000 scores of 100, whose powers no float64 holds.
TEST_F(TaggingLayers, CrfTakesLongSequencesWithLargeScores) {
  constexpr int64_t kRows = 1000;
  Tensor scores({kRows, 2}, DType::kFloat32), labels({kRows, 1}, DType::kInt64);
  for (int64_t row = 0; row < kRows; ++row) {
    scores.data<float>()[2 * row] = 100;
    scores.data<float>()[2 * row + 1] = row == 500 ? 100 : -100;
    labels.data<int64_t>()[row] = row < 10 ? 1 : 0;
  }
  for (Tensor* tensor : {&scores, &labels}) tensor->set_lod({{0, kRows}});
  feeds_ = {{"emission", scores}, {"tags", labels}};
  const Variable emission = layers::Data("emission", {-1, 2}, DType::kFloat32, {.lod_level = 1});
  const Variable tags = layers::Data("tags", {-1, 1}, DType::kInt64, {.lod_level = 1});
  const Variable transitions = layers::CreateParameter(
      {4, 2}, DType::kFloat32, {.initializer = initializer::Constant(-100)});
  const Variable loss =
      layers::LinearChainCrf(emission, tags, {.param_attr = {.shared = transitions}});
  std::vector<Variable> fetches = Gradients(layers::Mean(loss), {transitions});
  fetches.push_back(loss);
  const auto found = Run(fetches);
  // Ten labels are 200 below the best path; row 500 has either tag.
  EXPECT_NEAR(found[1].Item<float>(), 2000 + std::log(2.0), 1e-3);
  EXPECT_THAT(found[0].ToVector<float>(),
              Pointwise(FloatNear(1e-4f), std::vector<float>{1, -1, 0, 0, 9, 0.5f, -0.5f, -9}));
}

TEST_F(TaggingLayers, ChunkEvalCountsChunks) {
  // Types 0 and 1, IOB: B0 I0 B1 I1 O.
  const Variable inference = Feed<int64_t>("inference", {0, 2, 3}, 1);
  const Variable tags = Feed<int64_t>("tags", {0, 2, 4}, 1);
  const layers::ChunkScores scores = layers::ChunkEval(inference, tags, {.types = 2});
  const auto found = Run({scores.precision, scores.recall, scores.f1, scores.inferred,
                          scores.labelled, scores.correct});
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(found[i].Item<float>(), 0.5f);
  EXPECT_EQ(found[3].Item<int64_t>(), 2);
  EXPECT_EQ(found[4].Item<int64_t>(), 2);
  EXPECT_EQ(found[5].Item<int64_t>(), 1);
}

TEST_F(TaggingLayers, RefuseWhatDoesNotFit) {
  const Variable emission = Feed<float>("emission", {0, 0, 0, 0, 0, 0}, 2);
  const Variable tags = Feed<int64_t>("tags", {1, 0, 0}, 1);
  EXPECT_THAT(InvalidArgumentText([&] { layers::CrfDecoding(emission, {}); }),
              HasSubstr("param_attr names no parameter, expected that of LinearChainCrf"));
  EXPECT_THAT(InvalidArgumentText([&] { layers::ChunkEval(tags, tags, {}); }),
              HasSubstr("num_chunk_types = 0, expected at least 1"));
  const Variable unknown = layers::Data("unknown", {-1, -1}, DType::kFloat32, {.lod_level = 1});
  EXPECT_THAT(InvalidArgumentText([&] { layers::LinearChainCrf(unknown, tags); }),
              HasSubstr("has no known number of tags in its last dim"));
}

}  // namespace
}  // namespace skiff
