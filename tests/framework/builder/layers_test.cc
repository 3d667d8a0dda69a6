// What all layers have in common: parameters, names, errors, lines of callers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <source_location>
#include <string>
#include <vector>

#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/param_settings.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "tests/framework/builder/layers_fixture.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

TEST_F(LayersTest, GeluTanhIsTheApproximateGelu) {
  layers::Fc(rows_, 3, {.act = "gelu_tanh"});
  EXPECT_EQ(LastOp().type, "gelu");
  EXPECT_TRUE(LastOp().Attr<bool>("approximate"));
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

}  // namespace
}  // namespace skiff
