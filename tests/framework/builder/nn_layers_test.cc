// Convolutions, pooling, normalizations, and what else networks of images are made of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/autodiff/append_backward.h"
#include "framework/base/error.h"
#include "framework/builder/data.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/param_settings.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/op/registry.h"
#include "tests/framework/builder/layers_fixture.h"
#include "tests/framework/builder/warnings.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST_F(LayersTest, Conv2dInfersShapes) {
  const Variable out =
      layers::Conv2d(image_, {.filters = 6, .kernel = {3, 5}, .stride = 2, .padding = {1, 2}});
  EXPECT_THAT(out.dims(), ElementsAre(-1, 6, 4, 4));
  EXPECT_THAT(main_.root()->GetVar("conv2d_0.w_0")->dims, ElementsAre(6, 3, 3, 5));
  EXPECT_EQ(LastOp().Attr<int32_t>("axis"), 1);
  EXPECT_THAT(ErrorText([&] { layers::Conv2d(image_, {.filters = 4, .groups = 2}); }),
              HasSubstr("groups = 2, expected a divisor of the 3 channels and of the 4 filters"));
  EXPECT_THAT(ErrorText([&] { layers::Conv2d(rows_, {.filters = 4}); }),
              HasSubstr("expected 4 dims"));
  EXPECT_THAT(ErrorText([&] { layers::Conv2d(image_, {}); }), HasSubstr("filters = 0"));
}

TEST_F(LayersTest, Conv2dMayBeDepthwise) {
  const Variable wide =
      layers::Conv2d(image_, {.filters = 6, .kernel = 3, .groups = 3, .depthwise = true});
  EXPECT_THAT(wide.dims(), ElementsAre(-1, 6, 6, 6));
  EXPECT_THAT(OpTypes(), ElementsAre("depthwise_conv2d", "elementwise_add"));
  EXPECT_THAT(ParameterNames(), ElementsAre("depthwise_conv2d_0.w_0", "depthwise_conv2d_0.b_0"));
  EXPECT_THAT(main_.root()->FindVar("depthwise_conv2d_0.w_0")->dims, ElementsAre(6, 1, 3, 3));
  layers::Conv2d(image_, {.filters = 6, .groups = 3, .bias_attr = false});
  EXPECT_EQ(LastOp().type, "conv2d");
  EXPECT_THAT(
      ErrorText([&] { layers::Conv2d(wide, {.filters = 6, .groups = 3, .depthwise = true}); }),
      HasSubstr("groups = 3, expected a group for each of the 6 channels"));
}

TEST_F(LayersTest, PoolingWarnsOfWindowsWithoutAPixel) {
  const auto warnings = [](const std::function<void()>& pool) {
    const Warnings kept;
    pool();
    return kept.texts;
  };
  // The last of 4 windows begins at 3 * 3 - 1 = 8.
  EXPECT_THAT(
      warnings([&] {
        layers::Pool2d(image_, {.kernel = 3, .stride = 3, .padding = 1, .ceil_mode = true});
      }),
      ElementsAre(
          AllOf(StartsWith("pool2d (block 0, op #0"), HasSubstr("nn_layers_test.cc"),
                HasSubstr("of 4 windows of 3 along the height of 8, the last one has no pixel")),
          HasSubstr("of 4 windows of 3 along the width of 8, the last one has no pixel")));
  EXPECT_THAT(warnings([&] {
                layers::Pool2d(image_, {.kernel = {1, 2}, .padding = {1, 1}});
              }),
              ElementsAre(HasSubstr("along the height of 8, the first one")));
  const Variable volume = layers::Data("volume", {-1, 2, 6, 5, 5});
  EXPECT_THAT(
      warnings([&] {
        layers::Pool3d(volume, {.stride = layers::Extent3d(2, 1, 1), .ceil_mode = true});
      }),
      ElementsAre(HasSubstr("of 4 windows of 1 along the depth of 6, the last one has no pixel")));
  EXPECT_THAT(warnings([&] {
                layers::Pool2d(image_, {.kernel = 3, .stride = 2, .padding = 1, .ceil_mode = true});
                layers::Pool2d(image_, {.kernel = 3, .adaptive = true});
                layers::Pool2d(image_, {.padding = 5, .global = true});
              }),
              IsEmpty());
}

TEST_F(LayersTest, AWarningThatThrowsLeavesTheProgram) {
  const std::unique_ptr<Program> before = main_.Clone();
  const WarningSink previous =
      SetWarningSink([](const std::string& text) { Throw(ErrorCode::kInvalidArgument, text); });
  EXPECT_THAT(ErrorText([&] {
                layers::Pool2d(image_, {.kernel = {1, 2}, .padding = {1, 1}});
              }),
              HasSubstr("has no pixel"));
  SetWarningSink(previous);
  EXPECT_EQ(main_, *before);
}

TEST_F(LayersTest, Pool2dInfersShapes) {
  EXPECT_THAT(layers::Pool2d(image_, {.kernel = 2, .stride = 2}).dims(), ElementsAre(-1, 3, 4, 4));
  EXPECT_THAT(layers::Pool2d(image_, {.kernel = 2, .stride = 1}).dims(), ElementsAre(-1, 3, 7, 7));
  EXPECT_THAT(layers::Pool2d(image_, {.type = "avg", .global = true}).dims(),
              ElementsAre(-1, 3, 1, 1));
  EXPECT_THAT(layers::Pool2d(image_, {.kernel = 3, .adaptive = true}).dims(),
              ElementsAre(-1, 3, 3, 3));
  EXPECT_THAT(ErrorText([&] { layers::Pool2d(image_, {.type = "sum"}); }),
              HasSubstr("type \"sum\", expected max or avg"));
}

TEST_F(LayersTest, PoolingStepsByItsKernelUnlessTold) {
  EXPECT_THAT(layers::Pool2d(image_, {.kernel = {2, 4}}).dims(), ElementsAre(-1, 3, 4, 2));
  const Variable volume = layers::Data("volume", {-1, 4, 8, 9, 10});
  EXPECT_THAT(layers::Pool3d(volume, {.kernel = {2, 3, 5}}).dims(), ElementsAre(-1, 4, 4, 3, 2));
  // What has other windows than the kernel's has Fluid's attribute.
  layers::Pool2d(image_, {.kernel = 3, .global = true});
  EXPECT_THAT(LastOp().Attr<std::vector<int32_t>>("strides"), ElementsAre(1, 1));
  layers::Pool2d(image_, {.kernel = 3, .adaptive = true});
  EXPECT_THAT(LastOp().Attr<std::vector<int32_t>>("strides"), ElementsAre(1, 1));
}

TEST_F(LayersTest, BatchNormUpdatesItsStatisticsInPlace) {
  layers::BatchNorm(image_, {.act = "relu"});
  const Op& op = *main_.root()->ops()[0];
  EXPECT_EQ(op.Input("Mean"), op.Output("MeanOut"));
  EXPECT_EQ(op.Input("Variance"), op.Output("VarianceOut"));
  const Var& mean = *main_.root()->GetVar("batch_norm_0.w_1");
  EXPECT_TRUE(mean.persistable);
  EXPECT_TRUE(mean.stop_gradient);
  EXPECT_FALSE(mean.trainable);
  EXPECT_THAT(mean.dims, ElementsAre(3));
}

TEST_F(LayersTest, BatchNormReservesSpaceForItsGradient) {
  // PaddlePaddle's training kernel takes it for granted.
  layers::BatchNorm(image_);
  ASSERT_EQ(LastOp().Output("ReserveSpace").size(), 1u);
  EXPECT_TRUE(main_.root()->GetVar(LastOp().Output("ReserveSpace")[0])->stop_gradient);
  layers::BatchNorm(image_, {.is_test = true});
  EXPECT_TRUE(LastOp().Output("ReserveSpace").empty());
}

TEST_F(LayersTest, BatchNormWithGlobalStatisticsIsDifferentiable) {
  const Variable normal = layers::BatchNorm(image_, {.use_global_stats = true});
  AppendBackward(DefaultOpRegistry(), &main_, layers::Mean(normal).name());
  ASSERT_EQ(LastOp().type, "batch_norm_grad");
  // PaddlePaddle reads the running statistics from these slots.
  EXPECT_EQ(LastOp().Input("Mean"), LastOp().Input("MeanOut"));
  EXPECT_EQ(LastOp().Input("Variance"), LastOp().Input("VarianceOut"));
}

TEST_F(LayersTest, TransposedConvolutionsMakeImagesLarger) {
  const Variable y = layers::Conv2dTranspose(
      image_, {.filters = 6, .kernel = {3, 4}, .stride = 2, .padding = {1, 0}, .groups = 3});
  EXPECT_THAT(y.dims(), ElementsAre(-1, 6, 15, 18));
  EXPECT_THAT(main_.root()->FindVar("conv2d_transpose_0.w_0")->dims, ElementsAre(3, 2, 3, 4));
  const Variable sized = layers::Conv2dTranspose(image_, {.filters = 2,
                                                          .kernel = 3,
                                                          .stride = 2,
                                                          .output_size = layers::Extent2d(18, 17),
                                                          .bias_attr = false});
  EXPECT_THAT(sized.dims(), ElementsAre(-1, 2, 18, 17));
  EXPECT_THAT(ParameterNames(), ElementsAre("conv2d_transpose_0.w_0", "conv2d_transpose_0.b_0",
                                            "conv2d_transpose_1.w_0"));
  EXPECT_THAT(ErrorText([&] { layers::Conv2dTranspose(image_, {.filters = 4, .groups = 3}); }),
              HasSubstr("groups = 3, expected a divisor of the 3 channels and of the 4 filters"));
}

TEST_F(LayersTest, TransposedConvolutionsMayBeDepthwiseOrOfVolumes) {
  EXPECT_THAT(layers::Conv2dTranspose(image_, {.filters = 6,
                                               .kernel = 3,
                                               .stride = 2,
                                               .groups = 3,
                                               .depthwise = true,
                                               .bias_attr = false})
                  .dims(),
              ElementsAre(-1, 6, 17, 17));
  EXPECT_EQ(LastOp().type, "depthwise_conv2d_transpose");
  EXPECT_THAT(
      ErrorText([&] { layers::Conv2dTranspose(image_, {.filters = 6, .depthwise = true}); }),
      HasSubstr("groups = 1, expected a group for each of the 3 channels"));
  const Variable volume = layers::Data("volume", {-1, 4, 8, 9, 10});
  EXPECT_THAT(layers::Conv3dTranspose(
                  volume, {.filters = 6, .kernel = {1, 2, 3}, .stride = 2, .bias_attr = false})
                  .dims(),
              ElementsAre(-1, 6, 15, 18, 21));
  EXPECT_EQ(LastOp().type, "conv3d_transpose");
}

TEST_F(LayersTest, VolumesHaveThreeExtents) {
  const Variable volume = layers::Data("volume", {-1, 4, 8, 9, 10});
  const Variable y = layers::Conv3d(
      volume, {.filters = 6, .kernel = {1, 2, 3}, .padding = {0, 1, 1}, .groups = 2});
  EXPECT_THAT(y.dims(), ElementsAre(-1, 6, 8, 10, 10));
  EXPECT_THAT(main_.root()->FindVar("conv3d_0.w_0")->dims, ElementsAre(6, 2, 1, 2, 3));
  EXPECT_THAT(layers::Pool3d(volume, {.kernel = 2, .stride = layers::Extent3d(1, 2, 3)}).dims(),
              ElementsAre(-1, 4, 7, 4, 3));
  const Variable last = layers::Data("last", {-1, 8, 9, 10, 4});
  EXPECT_THAT(layers::Conv3d(last, {.filters = 5, .data_format = "NDHWC"}).dims(),
              ElementsAre(-1, 8, 9, 10, 5));
  EXPECT_THAT(ErrorText([&] { layers::Conv3d(volume, {.filters = 5, .data_format = "NCHW"}); }),
              HasSubstr("data format \"NCHW\", expected NCDHW or NDHWC"));
  EXPECT_THAT(ErrorText([&] { layers::Conv3d(image_, {.filters = 5}); }),
              HasSubstr("expected 5 dims"));
}

TEST_F(LayersTest, NormalizationsHaveScalesAndShiftsOfTheirExtent) {
  layers::LayerNorm(image_, {.begin_norm_axis = 2});
  layers::GroupNorm(image_, 3, {.bias_attr = false});
  const Variable y = layers::InstanceNorm(image_, {.param_attr = false});
  EXPECT_THAT(y.dims(), ElementsAre(-1, 3, 8, 8));
  EXPECT_THAT(ParameterNames(), ElementsAre("layer_norm_0.w_0", "layer_norm_0.b_0",
                                            "group_norm_0.w_0", "instance_norm_0.b_0"));
  EXPECT_THAT(main_.root()->FindVar("layer_norm_0.w_0")->dims, ElementsAre(64));
  EXPECT_THAT(main_.root()->FindVar("group_norm_0.w_0")->dims, ElementsAre(3));
  AppendBackward(DefaultOpRegistry(), &main_, layers::Mean(y).name());
  EXPECT_THAT(OpTypes(), ::testing::Contains("instance_norm_grad"));
  EXPECT_THAT(ErrorText([&] { layers::LayerNorm(image_, {.begin_norm_axis = 4}); }),
              HasSubstr("begin_norm_axis = 4 is outside [1, 3] and [-3, -1]"));
  EXPECT_THAT(ErrorText([&] { layers::GroupNorm(image_, 2); }), HasSubstr("divisor of the 3"));
}

TEST_F(LayersTest, LayerNormNormalisesTheLastDimUnlessTold) {
  layers::LayerNorm(image_);
  EXPECT_EQ(LastOp().Attr<int32_t>("begin_norm_axis"), 3);
  EXPECT_THAT(main_.root()->FindVar("layer_norm_0.w_0")->dims, ElementsAre(8));
  layers::LayerNorm(image_, {.begin_norm_axis = -3});
  EXPECT_THAT(main_.root()->FindVar("layer_norm_1.w_0")->dims, ElementsAre(3 * 8 * 8));
}

TEST_F(LayersTest, RmsNormHasAScaleOfTheLastDim) {
  const Variable y = layers::RmsNorm(image_);
  EXPECT_THAT(y.dims(), ElementsAre(-1, 3, 8, 8));
  layers::RmsNorm(image_, {.begin_norm_axis = 2});
  layers::RmsNorm(image_, {.param_attr = false});
  EXPECT_THAT(ParameterNames(), ElementsAre("rms_norm_0.w_0", "rms_norm_1.w_0"));
  EXPECT_THAT(main_.root()->FindVar("rms_norm_0.w_0")->dims, ElementsAre(8));
  EXPECT_THAT(main_.root()->FindVar("rms_norm_1.w_0")->dims, ElementsAre(64));
  AppendBackward(DefaultOpRegistry(), &main_, layers::Mean(y).name());
  EXPECT_THAT(OpTypes(), ::testing::Contains("rms_norm_grad"));
  for (const int64_t axis : {0, 4, -4}) {
    EXPECT_THAT(ErrorText([&] { layers::RmsNorm(image_, {.begin_norm_axis = axis}); }),
                HasSubstr(StrCat("begin_norm_axis = ", axis, " is outside [1, 3] and [-3, -1]")));
  }
}

// They run as images of height 1, of which a kernel of height 1 sees the same numbers.
TEST_F(LayersTest, SequencesHaveConvolutionsAndPools) {
  const Variable sequence = layers::Data("sequence", {-1, 4, 10});
  const Variable y = layers::Conv1d(
      sequence, {.filters = 6, .kernel = 3, .padding = 1, .groups = 2, .act = "relu"});
  EXPECT_THAT(y.dims(), ElementsAre(-1, 6, 10));
  EXPECT_THAT(main_.root()->FindVar("conv1d_0.w_0")->dims, ElementsAre(6, 2, 3));
  EXPECT_THAT(
      layers::Conv1d(sequence, {.filters = 2, .kernel = 3, .stride = 2, .dilation = 2}).dims(),
      ElementsAre(-1, 2, 3));
  EXPECT_THAT(
      layers::Conv1dTranspose(sequence, {.filters = 6, .kernel = 4, .stride = 2, .padding = 1})
          .dims(),
      ElementsAre(-1, 6, 20));
  EXPECT_THAT(main_.root()->FindVar("conv1d_transpose_0.w_0")->dims, ElementsAre(4, 6, 4));
  EXPECT_THAT(
      layers::Conv1dTranspose(sequence, {.filters = 1, .kernel = 3, .stride = 2, .output_size = 22})
          .dims(),
      ElementsAre(-1, 1, 22));
  EXPECT_THAT(layers::Pool1d(sequence, {.kernel = 2}).dims(), ElementsAre(-1, 4, 5));
  EXPECT_THAT(layers::Pool1d(sequence, {.kernel = 3, .type = "avg", .stride = 1}).dims(),
              ElementsAre(-1, 4, 8));
  EXPECT_THAT(layers::Pool1d(sequence, {.global = true}).dims(), ElementsAre(-1, 4, 1));
  EXPECT_THAT(ErrorText([&] { layers::Conv1d(image_, {.filters = 2}); }),
              AllOf(HasSubstr("conv1d: "), HasSubstr("expected 3 dims")));
  EXPECT_THAT(ErrorText([&] { layers::Pool1d(image_, {}); }), HasSubstr("expected 3 dims"));
}

TEST_F(LayersTest, ConvolutionsOfSequencesAddUpTheirWindows) {
  const Variable sequence = layers::Data("sequence", {1, 1, 4});
  const Variable y = layers::Conv1d(
      sequence,
      {.filters = 1,
       .kernel = 3,
       .padding = 1,
       .param_attr = {.initializer = initializer::FromArray(std::vector<float>{1, 10, 100})},
       .bias_attr = ParamAttr{.initializer = initializer::Constant(0.5)}});
  const Variable up = layers::Conv1dTranspose(
      sequence, {.filters = 1,
                 .kernel = 2,
                 .stride = 2,
                 .param_attr = {.initializer = initializer::FromArray(std::vector<float>{1, 10})},
                 .bias_attr = std::nullopt});
  const Variable pooled = layers::Pool1d(sequence, {.kernel = 2});
  Executor executor;
  executor.Run(startup_);
  const auto results =
      executor.Run(main_, {{"sequence", Tensor::FromValues<float>({1, 1, 4}, {1, 2, 3, 4})}},
                   {y.name(), up.name(), pooled.name()});
  EXPECT_THAT(results[0].ToVector<float>(), ElementsAre(210.5, 321.5, 432.5, 43.5));
  EXPECT_THAT(results[1].ToVector<float>(), ElementsAre(1, 10, 2, 20, 3, 30, 4, 40));
  EXPECT_THAT(results[2].ToVector<float>(), ElementsAre(2, 4));
}

TEST_F(LayersTest, ImagesAreResizedToASizeOrByAScale) {
  EXPECT_THAT(layers::ResizeBilinear(image_, {.size = layers::Extent2d(5, 20)}).dims(),
              ElementsAre(-1, 3, 5, 20));
  EXPECT_THAT(layers::ResizeNearest(image_, {.scale = 1.5f}).dims(), ElementsAre(-1, 3, 12, 12));
  for (const layers::ResizeOptions& options :
       {layers::ResizeOptions{}, layers::ResizeOptions{.size = 4, .scale = 2.0f}}) {
    EXPECT_THAT(ErrorText([&] { layers::ResizeNearest(image_, options); }),
                HasSubstr("either a size or a scale"));
  }
}

TEST_F(LayersTest, MaximaGoBackToTheirPixels) {
  const layers::MaxPool2dResult pooled = layers::MaxPool2dWithIndex(image_, {.kernel = 2});
  EXPECT_THAT(pooled.values.dims(), ElementsAre(-1, 3, 4, 4));
  EXPECT_EQ(pooled.indices.dtype(), DType::kInt32);
  EXPECT_THAT(
      layers::MaxPool2dWithIndex(image_, {.kernel = {3, 2}, .adaptive = true}).indices.dims(),
      ElementsAre(-1, 3, 3, 2));
  EXPECT_THAT(
      layers::MaxPool2dWithIndex(image_, {.kernel = 3, .stride = 2, .padding = 1}).values.dims(),
      ElementsAre(-1, 3, 4, 4));
  EXPECT_THAT(layers::MaxUnpool2d(pooled.values, pooled.indices, {.kernel = 2}).dims(),
              ElementsAre(-1, 3, 8, 8));
  // PaddlePaddle goes by it.
  EXPECT_THAT(LastOp().Attr<std::vector<int32_t>>("output_size"), ElementsAre(8, 8));
  EXPECT_THAT(layers::MaxUnpool2d(pooled.values, pooled.indices,
                                  {.kernel = 2, .output_size = layers::Extent2d(9, 8)})
                  .dims(),
              ElementsAre(-1, 3, 9, 8));
}

TEST_F(LayersTest, WindowsBecomeColumnsAndColumnsImages) {
  const Variable columns = layers::Unfold(
      image_, {.kernel = {2, 3}, .stride = {2, 1}, .padding = {0, 1}, .dilation = {1, 2}});
  EXPECT_THAT(columns.dims(), ElementsAre(-1, 18, 24));
  EXPECT_THAT(LastOp().Attr<std::vector<int32_t>>("paddings"), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(layers::Fold(columns, {.output_size = 8,
                                     .kernel = {2, 3},
                                     .stride = {2, 1},
                                     .padding = {0, 1},
                                     .dilation = {1, 2}})
                  .dims(),
              ElementsAre(-1, 3, 8, 8));
  EXPECT_THAT(InvalidArgumentText([&] {
                layers::Fold(columns, {.kernel = {2, 3}});
              }),
              HasSubstr("output_sizes"));
}

TEST_F(LayersTest, GridsSampleImages) {
  const Variable theta = layers::Data("theta", {-1, 2, 3});
  const Variable grid = layers::AffineGrid(theta, {-1, 3, 4, 5}, false);
  EXPECT_THAT(grid.dims(), ElementsAre(-1, 4, 5, 2));
  EXPECT_FALSE(LastOp().Attr<bool>("align_corners"));
  const Variable sampled =
      layers::GridSample(image_, grid, {.mode = "bicubic", .padding_mode = "border"});
  EXPECT_THAT(sampled.dims(), ElementsAre(-1, 3, 4, 5));
  EXPECT_TRUE(LastOp().Attr<bool>("align_corners"));
  EXPECT_THAT(ErrorText([&] { layers::GridSample(image_, grid, {.mode = "cubic"}); }),
              HasSubstr("bicubic"));
}

TEST_F(LayersTest, DropoutAndEmbedding) {
  EXPECT_THAT(layers::Dropout(rows_, 0.25f).dims(), ElementsAre(-1, 5));
  EXPECT_EQ(LastOp().Attr<float>("dropout_prob"), 0.25f);
  EXPECT_EQ(LastOp().Attr<std::string>("dropout_implementation"), "upscale_in_train");
  EXPECT_THAT(ErrorText([&] { layers::Dropout(rows_, 1.5f); }), HasSubstr("outside [0, 1]"));
  const Variable ids = layers::Data("ids", {-1, 6}, DType::kInt64);
  const Variable vectors = layers::Embedding(ids, {.rows = 100, .width = 16, .padding_idx = -1});
  EXPECT_THAT(vectors.dims(), ElementsAre(-1, 6, 16));
  EXPECT_EQ(LastOp().Attr<int64_t>("padding_idx"), 99);
  EXPECT_THAT(ParameterNames(), ElementsAre("embedding_0.w_0"));
}

TEST_F(LayersTest, PreluHasSlopesOfItsMode) {
  EXPECT_THAT(layers::Prelu(image_).dims(), ElementsAre(-1, 3, 8, 8));
  layers::Prelu(image_, {.mode = "channel"});
  layers::Prelu(image_, {.mode = "channel", .data_format = "NHWC"});
  layers::Prelu(image_, {.mode = "element"});
  EXPECT_THAT(ParameterNames(),
              ElementsAre("prelu_0.w_0", "prelu_1.w_0", "prelu_2.w_0", "prelu_3.w_0"));
  const auto dims = [&](const char* name) { return main_.root()->GetVar(name)->dims; };
  EXPECT_THAT(dims("prelu_0.w_0"), ElementsAre(1));
  EXPECT_THAT(dims("prelu_1.w_0"), ElementsAre(1, 3, 1, 1));
  EXPECT_THAT(dims("prelu_2.w_0"), ElementsAre(1, 1, 1, 8));
  EXPECT_THAT(dims("prelu_3.w_0"), ElementsAre(1, 3, 8, 8));
  EXPECT_EQ(startup_.root()->ops()[0]->Attr<float>("value"), 0.25f);
  EXPECT_THAT(ErrorText([&] { layers::Prelu(image_, {.mode = "row"}); }),
              HasSubstr("mode = \"row\", expected \"all\", \"channel\" or \"element\""));
  const Variable open = layers::Data("open", {-1, -1});
  EXPECT_THAT(ErrorText([&] { layers::Prelu(open, {.mode = "element"}); }),
              HasSubstr("prelu: dims 1 and later of X \"open\" of shape [-1, -1]"));
}

}  // namespace
}  // namespace skiff
