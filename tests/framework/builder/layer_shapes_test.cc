// The shapes that losses, metrics and the layers of tensors and numbers have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/data.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/metric_layers.h"
#include "framework/builder/nn.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "tests/framework/builder/layers_fixture.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(LayersTest, LossesAndMetrics) {
  const Variable logits = layers::Fc(rows_, 10);
  EXPECT_THAT(layers::SoftmaxWithCrossEntropy(logits, label_).dims(), ElementsAre(-1, 1));
  EXPECT_THAT(layers::CrossEntropy(layers::Softmax(logits), label_).dims(), ElementsAre(-1, 1));
  const Variable accuracy = layers::Accuracy(logits, label_, 3);
  EXPECT_EQ(accuracy.dtype(), DType::kFloat32);
  EXPECT_TRUE(accuracy.dims().empty());
  EXPECT_TRUE(accuracy.var().stop_gradient);
  EXPECT_THAT(layers::SquareErrorCost(rows_, rows_).dims(), ElementsAre(-1, 5));
}

TEST_F(LayersTest, TopKAndLabelsThatDoNotFitAreToldByShape) {
  EXPECT_THAT(ErrorText([&] { layers::TopK(rows_, 6); }),
              HasSubstr("): top_k: k = 6 is outside [1, 5] for X of shape [-1, 5]"));
  EXPECT_THAT(ErrorText([&] { layers::TopK(rows_, 0); }),
              HasSubstr("): top_k: k = 0 is outside [1, 5]"));
  EXPECT_THAT(ErrorText([&] { layers::CrossEntropy(rows_, rows_); }),
              HasSubstr("): cross_entropy: Label is float32, expected int64 or int32"));
  const Variable wide = layers::Data("wide", {-1, 2}, DType::kInt64);
  EXPECT_THAT(ErrorText([&] { layers::SoftmaxWithCrossEntropy(rows_, wide); }),
              HasSubstr("Label is of shape [-1, 2], expected [-1, 1]"));
  EXPECT_THAT(ErrorText([&] { layers::Accuracy(rows_, wide); }),
              HasSubstr("accuracy: Label is of shape [-1, 2], expected [rows, 1]"));
}

TEST_F(LayersTest, TensorLayersInferShapes) {
  EXPECT_THAT(layers::Reshape(image_, {0, -1}).dims(), ElementsAre(-1, 192));
  EXPECT_THAT(layers::Transpose(image_, {0, 2, 3, 1}).dims(), ElementsAre(-1, 8, 8, 3));
  EXPECT_THAT(layers::Flatten(image_).dims(), ElementsAre(-1, 192));
  EXPECT_THAT(layers::FlattenRange(image_, 1, -2).dims(), ElementsAre(-1, 24, 8));
  EXPECT_THAT(layers::Concat({rows_, rows_}, 1).dims(), ElementsAre(-1, 10));
  EXPECT_THAT(layers::SplitSections(rows_, {2, -1}, 1)[1].dims(), ElementsAre(-1, 3));
  EXPECT_EQ(layers::Split(image_, 4, 3).size(), 4u);
  EXPECT_THAT(layers::Slice(rows_, {.axes = {1}, .starts = {1}, .ends = {-1}}).dims(),
              ElementsAre(-1, 3));
  EXPECT_THAT(layers::Unsqueeze(rows_, {1}).dims(), ElementsAre(-1, 1, 5));
  EXPECT_THAT(layers::Squeeze(layers::Unsqueeze(rows_, {1}), {1}).dims(), ElementsAre(-1, 5));
  EXPECT_EQ(layers::Cast(label_, DType::kFloat32).dtype(), DType::kFloat32);
  EXPECT_EQ(layers::TopK(rows_, 2).indices.dtype(), DType::kInt64);
  EXPECT_THAT(layers::FillConstant({2, 2}, DType::kInt64, 7).dims(), ElementsAre(2, 2));
}

TEST_F(LayersTest, IndexingLayersInferShapes) {
  const Variable index = layers::Data("index", {3}, DType::kInt64);
  EXPECT_THAT(layers::Gather(rows_, index).dims(), ElementsAre(3, 5));
  EXPECT_THAT(layers::IndexSelect(rows_, index, -1).dims(), ElementsAre(-1, 3));
  EXPECT_THAT(layers::GatherNd(image_, label_).dims(), ElementsAre(-1, 3, 8, 8));
  const Variable updates = layers::FillConstant({3, 5}, DType::kFloat32, 1);
  EXPECT_THAT(layers::Scatter(rows_, index, updates, /*overwrite=*/false).dims(),
              ElementsAre(-1, 5));
  EXPECT_FALSE(LastOp().Attr<bool>("overwrite"));
  EXPECT_THAT(layers::ScatterNdAdd(rows_, layers::Unsqueeze(index, {1}), updates).dims(),
              ElementsAre(-1, 5));
  const Variable one_hot = layers::OneHot(index, 7, DType::kFloat64);
  EXPECT_THAT(one_hot.dims(), ElementsAre(3, 7));
  EXPECT_EQ(one_hot.dtype(), DType::kFloat64);
}

TEST_F(LayersTest, LayersThatRepeatAndRearrangeInferShapes) {
  EXPECT_THAT(layers::Stack({rows_, rows_}, -1).dims(), ElementsAre(-1, 5, 2));
  EXPECT_EQ(layers::Unstack(image_, -1).size(), 8u);
  EXPECT_EQ(LastOp().Attr<int32_t>("axis"), 3);
  EXPECT_EQ(LastOp().Attr<int32_t>("num"), 8);
  EXPECT_THAT(ErrorText([&] { layers::Unstack(rows_, 0); }), HasSubstr("extent of axis 0 is -1"));
  const layers::StridedSliceOptions options{
      .axes = {-1}, .starts = {4}, .ends = {0}, .strides = {-2}};
  EXPECT_THAT(layers::StridedSlice(rows_, options).dims(), ElementsAre(-1, 2));
  EXPECT_THAT(LastOp().Attr<std::vector<int32_t>>("axes"), ElementsAre(1));
  EXPECT_THAT(layers::Tile(rows_, {2, 3}).dims(), ElementsAre(-1, 15));
  EXPECT_THAT(layers::Expand(layers::Unsqueeze(rows_, {1}), {-1, 4, -1}).dims(),
              ElementsAre(-1, 4, 5));
  EXPECT_THAT(layers::Pad(rows_, {0, 0, 1, 2}, 7.0f).dims(), ElementsAre(-1, 8));
  EXPECT_EQ(LastOp().Attr<float>("pad_value"), 7.0f);
  EXPECT_THAT(layers::Pad2d(image_, {.paddings = {1, 2, 3, 4}, .mode = "reflect"}).dims(),
              ElementsAre(-1, 3, 11, 15));
  EXPECT_THAT(layers::PixelShuffle(layers::Data("wide", {-1, 8, 2, 3}), 2).dims(),
              ElementsAre(-1, 2, 4, 6));
  EXPECT_THAT(layers::Flip(rows_, {1}).dims(), ElementsAre(-1, 5));
  EXPECT_THAT(layers::Roll(rows_, {2}, {1}).dims(), ElementsAre(-1, 5));
  layers::Tril(rows_, 1);
  EXPECT_TRUE(LastOp().Attr<bool>("lower"));
  layers::Triu(rows_, 1);
  EXPECT_FALSE(LastOp().Attr<bool>("lower"));
  const Variable vector = layers::FillConstant({4}, DType::kFloat32, 1);
  EXPECT_THAT(layers::Diag(vector, -1).dims(), ElementsAre(5, 5));
  EXPECT_THAT(layers::Meshgrid({vector, layers::Data("columns", {3})})[1].dims(),
              ElementsAre(4, 3));
  EXPECT_THAT(ErrorText([&] { layers::Meshgrid({vector}); }), HasSubstr("expected two or more"));
}

TEST_F(LayersTest, NoGradientFlowsThroughConstantsAndRandomNumbers) {
  const std::vector<Variable> made = {layers::OneHot(label_, 4),
                                      layers::Eye(3, 4),
                                      layers::ShapeOf(image_),
                                      layers::RandInt({2, 3}, 0, 9, DType::kInt32),
                                      layers::RandPerm(6),
                                      layers::Bernoulli(rows_),
                                      layers::Multinomial(rows_, 2, /*replacement=*/true)};
  for (const Variable& x : made) EXPECT_TRUE(x.var().stop_gradient) << x.name();
  EXPECT_THAT(made[1].dims(), ElementsAre(3, 4));
  EXPECT_THAT(made[2].dims(), ElementsAre(4));
  EXPECT_EQ(made[3].dtype(), DType::kInt32);
  EXPECT_THAT(made[4].dims(), ElementsAre(6));
  EXPECT_THAT(made[5].dims(), ElementsAre(-1, 5));
  EXPECT_THAT(made[6].dims(), ElementsAre(-1, 2));
}

TEST_F(LayersTest, PrintAndAssertShowVariables) {
  EXPECT_THAT(layers::Print(rows_, {.message = "rows", .phase = "FORWARD"}).dims(),
              ElementsAre(-1, 5));
  EXPECT_EQ(LastOp().Attr<std::string>("message"), "rows");
  EXPECT_EQ(LastOp().Attr<std::string>("print_phase"), "FORWARD");
  const Variable condition = layers::FillConstant({1}, DType::kBool, 1);
  layers::Assert(condition, {rows_, label_});
  EXPECT_THAT(LastOp().Input("Data"), ElementsAre("rows", "label"));
  EXPECT_THAT(ErrorText([&] { layers::Assert(condition, {}); }),
              HasSubstr("there is no data to show"));
}

TEST_F(LayersTest, AxesAreWrittenFromTheFront) {
  // Some of PaddlePaddle's ops misread negative ones.
  EXPECT_EQ(layers::Split(image_, 4, -1).size(), 4u);
  EXPECT_EQ(LastOp().Attr<int32_t>("axis"), 3);
  EXPECT_EQ(layers::SplitSections(image_, {1, 2}, -3)[1].dims()[1], 2);
  EXPECT_EQ(LastOp().Attr<int32_t>("axis"), 1);
  EXPECT_THAT(
      layers::Slice(rows_, {.axes = {-1}, .starts = {1}, .ends = {2}, .decrease_axis = {-1}})
          .dims(),
      ElementsAre(-1));
  EXPECT_THAT(LastOp().Attr<std::vector<int32_t>>("axes"), ElementsAre(1));
  EXPECT_THAT(LastOp().Attr<std::vector<int32_t>>("decrease_axis"), ElementsAre(1));
  EXPECT_THAT(layers::Flatten(image_, -1).dims(), ElementsAre(-1, 8));
  EXPECT_EQ(LastOp().Attr<int32_t>("axis"), 3);
  EXPECT_THAT(ErrorText([&] { layers::Split(rows_, 5, 2); }), HasSubstr("axis 2 is outside"));
}

TEST_F(LayersTest, MathLayersInferShapes) {
  EXPECT_TRUE(layers::Mean(rows_).dims().empty());
  EXPECT_TRUE(layers::ReduceSum(rows_).dims().empty());
  EXPECT_THAT(layers::ReduceSum(image_, {.dims = {2, 3}}).dims(), ElementsAre(-1, 3));
  EXPECT_THAT(layers::ReduceSum(image_, {.dims = {1}, .keep_dim = true}).dims(),
              ElementsAre(-1, 1, 8, 8));
  EXPECT_THAT(layers::MatMul(rows_, rows_, {.transpose_y = true, .alpha = 0.5f}).dims(),
              ElementsAre(-1, -1));
  EXPECT_THAT(layers::Sum({rows_, rows_}).dims(), ElementsAre(-1, 5));
  EXPECT_THAT(layers::Clip(rows_, -1.0f, 1.0f).dims(), ElementsAre(-1, 5));
  EXPECT_THAT(ErrorText([&] { layers::Clip(rows_, 1.0f, -1.0f); }), HasSubstr("min = 1 is above"));
  const Variable batch = layers::Data("batch", {-1, 4, 5});
  EXPECT_THAT(layers::Bmm(batch, layers::Data("other", {-1, 5, 3})).dims(), ElementsAre(-1, 4, 3));
  EXPECT_THAT(layers::Addmm(layers::Data("row", {4}), rows_, layers::Data("w", {5, 4})).dims(),
              ElementsAre(-1, 4));
}

TEST_F(LayersTest, ComparisonsGiveBools) {
  const Variable less = layers::LessThan(rows_, rows_);
  EXPECT_EQ(less.dtype(), DType::kBool);
  EXPECT_EQ(layers::LogicalAnd(less, layers::LogicalNot(less)).dtype(), DType::kBool);
}

TEST_F(LayersTest, IncrementWritesItsInput) {
  const Variable counter = layers::FillConstant({1}, DType::kInt64, 0);
  EXPECT_EQ(layers::Increment(counter).name(), counter.name());
  EXPECT_EQ(LastOp().Output("Out"), LastOp().Input("X"));
}

TEST_F(LayersTest, VariablesOfAnotherProgramAreRefused) {
  Program other_main, other_startup;
  const ProgramGuard other(&other_main, &other_startup);
  EXPECT_THAT(ErrorText([&] { layers::Relu(rows_); }), HasSubstr("belongs to another program"));
}

}  // namespace
}  // namespace skiff
