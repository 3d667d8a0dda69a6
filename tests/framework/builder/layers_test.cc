#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "framework/autodiff/append_backward.h"
#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/metric_layers.h"
#include "framework/builder/nn.h"
#include "framework/builder/param_settings.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/executor/executor.h"
#include "framework/op/registry.h"
#include "tests/framework/builder/builder_fixture.h"
#include "tests/framework/builder/warnings.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class LayersTest : public BuilderTest {
 protected:
  Variable image_ = layers::Data("image", {-1, 3, 8, 8});
  Variable rows_ = layers::Data("rows", {-1, 5});
  Variable label_ = layers::Data("label", {-1, 1}, DType::kInt64);
};

TEST_F(LayersTest, DataIsAFeedWithoutGradient) {
  EXPECT_TRUE(rows_.var().need_check_feed);
  EXPECT_TRUE(rows_.var().stop_gradient);
  EXPECT_FALSE(rows_.var().persistable);
  EXPECT_THAT(ErrorText([] { layers::Data("rows", {1}); }), HasSubstr("\"rows\" exists already"));
  EXPECT_THAT(ErrorText([] { layers::Data("bad", {-2}); }), HasSubstr("a dim below -1"));
  EXPECT_THAT(ErrorText([] { layers::Data("", {1}); }), HasSubstr("needs a name"));
}

TEST_F(LayersTest, ParametersBearFluidsNames) {
  const Variable conv = layers::Conv2d(image_, {.filters = 4, .kernel = 3});
  const Variable normal = layers::BatchNorm(conv);
  const Variable hidden = layers::Fc(normal, 7, {.num_flatten_dims = 1});
  layers::Fc(hidden, 2);
  EXPECT_THAT(ParameterNames(),
              ElementsAre("conv2d_0.w_0", "conv2d_0.b_0", "batch_norm_0.w_0", "batch_norm_0.b_0",
                          "batch_norm_0.w_1", "batch_norm_0.w_2", "fc_0.w_0", "fc_0.b_0",
                          "fc_1.w_0", "fc_1.b_0"));
  EXPECT_EQ(hidden.name(), "fc_0.tmp_1");
}

TEST_F(LayersTest, ParametersAreInitialisedByTheStartupProgram) {
  layers::Fc(rows_, 2);
  const auto& ops = startup_.root()->ops();
  ASSERT_EQ(ops.size(), 2u);
  EXPECT_EQ(ops[0]->type, "uniform_random");
  EXPECT_THAT(ops[0]->Output("Out"), ElementsAre("fc_0.w_0"));
  EXPECT_EQ(ops[1]->type, "fill_constant");
  EXPECT_TRUE(startup_.root()->GetVar("fc_0.w_0")->persistable);
  EXPECT_EQ(startup_.root()->GetVar("fc_0.w_0")->dims, (std::vector<int64_t>{5, 2}));
}

TEST_F(LayersTest, FcMultipliesTheLastDimAndActivates) {
  const Variable out = layers::Fc(image_, 10, {.act = "relu"});
  EXPECT_THAT(out.dims(), ElementsAre(-1, 3, 8, 10));
  EXPECT_THAT(OpTypes(), ElementsAre("mul", "elementwise_add", "relu"));
  EXPECT_EQ(main_.root()->ops()[1]->Attr<int32_t>("axis"), 3);
  EXPECT_THAT(main_.root()->GetVar("fc_0.w_0")->dims, ElementsAre(8, 10));
}

TEST_F(LayersTest, FcFlattensTheDimsAfterTheFirstOnes) {
  const auto weight_dims = [&](int64_t num_flatten_dims) {
    const ParamAttr attr = {.name = StrCat("w", num_flatten_dims)};
    layers::Fc(image_, 10, {.num_flatten_dims = num_flatten_dims, .param_attr = attr});
    return main_.root()->GetVar(attr.name)->dims;
  };
  EXPECT_THAT(weight_dims(1), ElementsAre(3 * 8 * 8, 10));
  EXPECT_THAT(weight_dims(-2), ElementsAre(8 * 8, 10));
  for (const int64_t none_or_all : {0, 4, -4}) {
    EXPECT_THAT(ErrorText([&] { weight_dims(none_or_all); }),
                HasSubstr(StrCat("num_flatten_dims = ", none_or_all,
                                 " is outside [1, 3] and [-3, -1] for X \"image\" of shape ")));
  }
}

TEST_F(LayersTest, BiasAttrSaysWhetherThereIsABias) {
  layers::Fc(rows_, 4, {.bias_attr = {}, .name = "default"});
  layers::Fc(rows_, 4, {.bias_attr = true, .name = "yes"});
  layers::Fc(rows_, 4, {.bias_attr = ParamAttr{.name = "own"}, .name = "named"});
  layers::Fc(rows_, 4, {.bias_attr = false, .name = "no"});
  layers::Fc(rows_, 4, {.bias_attr = std::nullopt, .name = "none"});
  EXPECT_THAT(ParameterNames(), ElementsAre("default.w_0", "default.b_0", "yes.w_0", "yes.b_0",
                                            "named.w_0", "own", "no.w_0", "none.w_0"));
}

TEST_F(LayersTest, FcOfSeveralInputsAddsUpTheirProducts) {
  const Variable out = layers::Fc({image_, rows_}, 4, {.num_flatten_dims = 1, .bias_attr = false});
  EXPECT_THAT(OpTypes(), ElementsAre("mul", "mul", "sum"));
  EXPECT_THAT(ParameterNames(), ElementsAre("fc_0.w_0", "fc_0.w_1"));
  EXPECT_THAT(out.dims(), ElementsAre(-1, 4));
}

TEST_F(LayersTest, ErrorsNameTheCallersLine) {
  const int line = std::source_location::current().line() + 1;
  const std::string message = ErrorText([&] { layers::Fc(rows_, 0); });
  EXPECT_THAT(message, HasSubstr(StrCat("layers_test.cc:", line, ": fc: size = 0")));
  const int next = std::source_location::current().line() + 1;
  const std::string shape = ErrorText([&] { layers::ElementwiseAdd(rows_, image_); });
  EXPECT_THAT(shape, HasSubstr("elementwise_add (block 0, op #0, "));
  EXPECT_THAT(shape, HasSubstr(StrCat("layers_test.cc:", next,
                                      "): elementwise_add: shapes X [-1, 5] and Y [-1, 3, 8, 8] "
                                      "don't broadcast at axis = -1")));
}

TEST_F(LayersTest, AFailedCallLeavesNoOpBehind) {
  const size_t vars = main_.root()->vars().size();
  EXPECT_THROW(layers::ElementwiseAdd(rows_, image_), Error);
  EXPECT_TRUE(main_.root()->ops().empty());
  EXPECT_EQ(main_.root()->vars().size(), vars);
}

TEST_F(LayersTest, UnknownActivationIsAnError) {
  EXPECT_THAT(ErrorText([&] { layers::Fc(rows_, 3, {.act = "sigmoit"}); }),
              HasSubstr("unknown op \"sigmoit\"; did you mean \"sigmoid\""));
}

TEST_F(LayersTest, SiluIsTheOpSwish) {
  layers::Fc(rows_, 3, {.act = "silu"});
  EXPECT_EQ(LastOp().type, "swish");
}

TEST_F(LayersTest, FcOfAVectorIsAnError) {
  EXPECT_THAT(ErrorText([&] { layers::Fc(layers::Data("vector", {5}), 3); }),
              HasSubstr("\"vector\" of shape [5] has no rows, expected a rank of at least 2"));
}

TEST_F(LayersTest, ActivationsByNameHaveTheDefaultsOfTheirLayers) {
  const auto attribute = [&](const char* name) { return LastOp().Attr<float>(name); };
  layers::LeakyRelu(rows_);
  const float alpha = attribute("alpha");
  layers::Fc(rows_, 3, {.act = "leaky_relu"});
  EXPECT_EQ(attribute("alpha"), alpha);
  layers::HardSigmoid(rows_);
  const float slope = attribute("slope");
  layers::Fc(rows_, 3, {.act = "hard_sigmoid"});
  EXPECT_EQ(attribute("slope"), slope);
}

TEST_F(LayersTest, OpsRememberTheCallersLine) {
  const int line = std::source_location::current().line() + 1;
  layers::Fc(rows_, 3, {.act = "relu"});
  for (const auto& op : main_.root()->ops()) EXPECT_EQ(op->site.line, line);
  for (const auto& op : startup_.root()->ops()) EXPECT_EQ(op->site.line, line);
}

TEST_F(LayersTest, NamedParametersAreShared) {
  layers::Fc(rows_, 4, {.param_attr = {.name = "shared"}, .bias_attr = false});
  layers::Fc(rows_, 4, {.param_attr = {.name = "shared"}, .bias_attr = false});
  EXPECT_THAT(ParameterNames(), ElementsAre("shared"));
  EXPECT_EQ(startup_.root()->ops().size(), 1u);
  EXPECT_THAT(ErrorText([&] { layers::Fc(rows_, 5, {.param_attr = {.name = "shared"}}); }),
              HasSubstr("\"shared\" exists as float32 [5, 4], expected float32 [5, 5]"));
}

TEST_F(LayersTest, ParametersAreSharedWithoutAName) {
  const Variable w = layers::CreateParameter({5, 5}, DType::kFloat32, {.learning_rate = 0.5f});
  const Variable b = layers::CreateParameter({5});
  const layers::FcOptions options{.param_attr = {.shared = w}, .bias_attr = ParamAttr{.shared = b}};
  layers::Fc(layers::Fc(rows_, 5, options), 5, options);
  EXPECT_THAT(ParameterNames(), ElementsAre(w.name(), b.name()));
  EXPECT_EQ(startup_.root()->ops().size(), 2u);
  std::vector<std::string> read;
  for (const auto& op : main_.root()->ops()) read.push_back(op->Input("Y")[0]);
  EXPECT_THAT(read, ElementsAre(w.name(), b.name(), w.name(), b.name()));
  EXPECT_EQ(w.var().learning_rate_factor, 0.5f);
}

TEST_F(LayersTest, EveryLayerTakesSharedParameters) {
  const Variable ids = layers::Data("ids", {-1, 7}, DType::kInt64);
  const Variable table = layers::CreateParameter({100, 16});
  const layers::EmbeddingOptions embedding{
      .rows = 100, .width = 16, .param_attr = {.shared = table}};
  layers::Embedding(ids, embedding);
  layers::Embedding(ids, embedding);
  const Variable filter = layers::CreateParameter({4, 3, 3, 3});
  layers::Conv2d(image_,
                 {.filters = 4, .kernel = 3, .param_attr = {.shared = filter}, .bias_attr = false});
  const auto of_channels = [&](bool trainable) {
    return layers::CreateParameter({3}, DType::kFloat32, {.trainable = trainable});
  };
  const Variable scale = of_channels(true), shift = of_channels(true);
  const Variable mean = of_channels(false), variance = of_channels(false);
  const size_t parameters = ParameterNames().size();
  const layers::BatchNormOptions norm{.param_attr = {.shared = scale},
                                      .bias_attr = {.shared = shift},
                                      .moving_mean = mean,
                                      .moving_variance = variance};
  layers::BatchNorm(image_, norm);
  layers::BatchNorm(image_, norm);
  EXPECT_EQ(ParameterNames().size(), parameters);
  EXPECT_THAT(LastOp().Output("MeanOut"), ElementsAre(mean.name()));
  EXPECT_THAT(LastOp().Output("VarianceOut"), ElementsAre(variance.name()));
}

TEST_F(LayersTest, RefusesToShareWhatDoesNotFit) {
  const Variable w = layers::CreateParameter({5, 4});
  const auto message = [&](const ParamAttr& attr, int64_t size) {
    return ErrorText([&] { layers::Fc(rows_, size, {.param_attr = attr}); });
  };
  EXPECT_THAT(message({.shared = w}, 5),
              HasSubstr(StrCat("fc: the shared parameter \"", w.name(),
                               "\" is float32 [5, 4], expected float32 [5, 5]")));
  EXPECT_THAT(message({.shared = rows_}, 4), HasSubstr("\"rows\" is no parameter"));
  EXPECT_THAT(message({.shared = w, .name = "mine"}, 4), HasSubstr("comes with other settings"));
  EXPECT_THAT(message({.shared = w, .trainable = false}, 4),
              HasSubstr("comes with other settings"));
  Program other, other_startup;
  const ProgramGuard guard(&other, &other_startup);
  const Variable x = layers::Data("x", {-1, 5});
  EXPECT_THAT(ErrorText([&] { layers::Fc(x, 4, {.param_attr = {.shared = w}}); }),
              HasSubstr("is not in the root block of the default main program"));
}

TEST_F(LayersTest, IntegersThatDoNotFitAreToldByAttribute) {
  const int64_t wide = int64_t{1} << 40;
  EXPECT_THAT(ErrorText([&] {
                layers::Reshape(rows_, {0, wide});
              }),
              HasSubstr("shape = 1099511627776 doesn't fit into the 32 bits"));
  EXPECT_THAT(ErrorText([&] { layers::Softmax(rows_, wide); }),
              AllOf(HasSubstr("layers_test.cc:"),
                    HasSubstr(": softmax: axis = 1099511627776 doesn't fit into the 32 bits")));
  EXPECT_THAT(OpTypes(), ElementsAre());
  // An op that declares 64 bits has them.
  EXPECT_THAT(layers::Roll(rows_, {wide}, {1}).dims(), ElementsAre(-1, 5));
}

TEST_F(LayersTest, ParamAttrReachesTheVariable) {
  layers::Fc(rows_, 4,
             {.param_attr = {.learning_rate = 0.5f,
                             .regularizer = L2Decay(0.25f),
                             .trainable = false,
                             .need_clip = false}});
  const Var& weight = *main_.root()->GetVar("fc_0.w_0");
  EXPECT_EQ(weight.learning_rate_factor, 0.5f);
  EXPECT_FALSE(weight.trainable);
  EXPECT_TRUE(weight.stop_gradient);
  EXPECT_EQ(std::get<std::string>(weight.attrs.at(kRegularizerVarAttr)), "l2_decay 0.25");
  EXPECT_EQ(std::get<int32_t>(weight.attrs.at(kNeedClipVarAttr)), 0);
}

TEST_F(LayersTest, ParametersNeedKnownExtents) {
  const Variable open = layers::Data("open", {-1, -1});
  EXPECT_THAT(ErrorText([&] { layers::Fc(open, 3); }),
              HasSubstr("fc: dims 1 and later of X \"open\" of shape [-1, -1]"));
}

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
          AllOf(StartsWith("pool2d (block 0, op #0"), HasSubstr("layers_test.cc"),
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
