#include "framework/analysis/model_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/data.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/adam.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/io/inference_model.h"
#include "framework/ir/program.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A convolution, a normalization and a layer whose parameter is used twice, in training.
class ModelSummaryTest : public testing::Test {
 protected:
  ModelSummaryTest() {
    const Variable image = layers::Data("image", {-1, 3, 8, 8});
    const Variable label = layers::Data("label", {-1, 1}, DType::kInt64);
    Variable x = layers::Conv2d(image, {.filters = 4, .kernel = 3, .padding = 1});
    x = layers::BatchNorm(x);
    const Variable w =
        layers::CreateParameter({256, 256}, DType::kFloat32, {.name = "w", .trainable = false});
    x = layers::Flatten(x);
    for (const char* scope : {"first", "second"}) {
      const NameScope named(scope);
      x = layers::Fc(x, 256, {.param_attr = {.shared = w}, .act = "relu"});
    }
    x = layers::Fc(x, 10);
    logits_ = x.name();
    const Variable loss = layers::Mean(layers::SoftmaxWithCrossEntropy(x, label));
    optimizer::Adam({.learning_rate = 0.1}).Minimize(loss);
  }

  static const LayerSummary& Layer(const ModelSummary& summary, const std::string& name) {
    for (const LayerSummary& layer : summary.layers) {
      if (layer.name == name) return layer;
    }
    throw Error(ErrorCode::kNotFound, name);
  }

  Program main_, startup_;
  ProgramGuard guard_{&main_, &startup_};
  std::string logits_;
};

TEST_F(ModelSummaryTest, CountsParametersOnce) {
  const ModelSummary summary = Summarize(main_);
  EXPECT_EQ(Layer(summary, "conv2d_0").parameters, 3 * 4 * 3 * 3 + 4);
  // The running mean and variance are none.
  EXPECT_EQ(Layer(summary, "batch_norm_0").parameters, 2 * 4);
  EXPECT_EQ(Layer(summary, "first/fc_0").parameters, 256 * 256 + 256);
  EXPECT_EQ(Layer(summary, "first/fc_0").trainable_parameters, 256);
  EXPECT_EQ(Layer(summary, "second/fc_1").parameters, 256) << "w is the first layer's";
  EXPECT_EQ(Layer(summary, "fc_2").parameters, 256 * 10 + 10);
  EXPECT_EQ(summary.parameters, 112 + 8 + 256 * 256 + 2 * 256 + 2570);
  EXPECT_EQ(summary.trainable_parameters, 112 + 8 + 2 * 256 + 2570);
  EXPECT_EQ(summary.parameter_bytes, 4 * summary.parameters);
}

// Of a training program as of its clone for evaluation.
TEST_F(ModelSummaryTest, IsThatOfTheForwardPass) {
  const ModelSummary summary = Summarize(main_);
  EXPECT_EQ(summary.Text(), Summarize(*main_.CloneForTest()).Text());
  EXPECT_THAT(Layer(summary, "first/fc_0").ops, ElementsAre("mul", "elementwise_add", "relu"));
}

TEST_F(ModelSummaryTest, LeavesOpenWhatTheProgramLeavesOpen) {
  const ModelSummary summary = Summarize(main_);
  EXPECT_EQ(Layer(summary, "conv2d_0").output, (Shape{-1, 4, 8, 8}));
  EXPECT_EQ(Layer(summary, "batch_norm_0").output, (Shape{-1, 4, 8, 8}));
  EXPECT_FALSE(Layer(summary, "conv2d_0").flop);
  EXPECT_FALSE(summary.flop);
  EXPECT_EQ(Layer(summary, "batch_norm_0").flop, 0);
}

TEST_F(ModelSummaryTest, KnowsShapesAndFlopOfABatch) {
  for (const SummaryOptions& options :
       {SummaryOptions{.batch_size = 5},
        SummaryOptions{.feeds = {{"image", {5, 3, 8, 8}}, {"label", {5, 1}}}}}) {
    const ModelSummary summary = Summarize(main_, options);
    EXPECT_EQ(Layer(summary, "conv2d_0").output, (Shape{5, 4, 8, 8}));
    const double conv = 2.0 * 5 * 4 * 8 * 8 * 3 * 3 * 3;
    const double hidden = 2.0 * 5 * 256 * 256;
    EXPECT_EQ(Layer(summary, "conv2d_0").flop, conv);
    EXPECT_EQ(Layer(summary, "second/fc_1").flop, hidden);
    EXPECT_EQ(summary.flop, conv + 2 * hidden + 2.0 * 5 * 256 * 10);
  }
  EXPECT_EQ(main_.root()->GetVar("image")->dims[0], -1) << "the program stays as it is";
}

TEST_F(ModelSummaryTest, IsATable) {
  const std::string text = Summarize(main_, {.batch_size = 1}).Text();
  EXPECT_THAT(text, HasSubstr("layer "));
  EXPECT_THAT(text, HasSubstr("first/fc_0 "));
  EXPECT_THAT(text, HasSubstr("mul, elementwise_add, relu  [1, 256]"));
  EXPECT_THAT(text, HasSubstr("      65,792        256   0.13\n"));
  EXPECT_THAT(text, HasSubstr("68,738      3,202   0.28\n"));
  EXPECT_THAT(text, HasSubstr("\nparameters: 0.27 MB; MFLOP: of matrix products and convolutions"));
}

// With its feed and fetch ops.
TEST_F(ModelSummaryTest, TakesAnInferenceProgram) {
  const auto model = MakeInferenceProgram(main_, {"image"}, {logits_}, {});
  const ModelSummary summary = Summarize(*model, {.batch_size = 2});
  EXPECT_EQ(summary.parameters, Summarize(main_).parameters);
  EXPECT_EQ(Layer(summary, "fc_2").output, (Shape{2, 10}));
  EXPECT_GT(summary.flop.value(), 0);
}

TEST_F(ModelSummaryTest, RefusesWhatIsNoFeed) {
  EXPECT_THAT(ErrorText([&] {
                Summarize(main_, {.feeds = {{"w", {1}}}});
              }),
              HasSubstr("summary: \"w\" is no feed of the program"));
  EXPECT_THAT(ErrorText([&] {
                Summarize(main_, {.feeds = {{"typo", {1}}}});
              }),
              HasSubstr("summary: \"typo\" is no feed of the program"));
  EXPECT_THAT(ErrorText([&] { Summarize(main_, {.batch_size = -1}); }),
              HasSubstr("batch_size = -1, expected no negative number"));
  EXPECT_THAT(ErrorText([&] {
                Summarize(main_, {.feeds = {{"image", {1, 2, 8, 8}}}});
              }),
              HasSubstr("conv2d"));
}

}  // namespace
}  // namespace skiff
