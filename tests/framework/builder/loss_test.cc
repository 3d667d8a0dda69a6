#include "framework/builder/loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/metric_layers.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// The values of loss(x, y, w) for x = (0.25, 0.5), y = (1, 0) and w = (2, 4), columns all three.
std::vector<float> Values(
    const std::function<Variable(const Variable& x, const Variable& y, const Variable& w)>& loss) {
  Program main, startup;
  ProgramGuard guard(&main, &startup);
  const auto column = [](const char* name) { return layers::Data(name, {2, 1}); };
  const Variable value = loss(column("x"), column("y"), column("w"));
  Executor executor;
  return executor.Compile(main)
      .Run({{"x", Tensor::FromValues<float>({2, 1}, {0.25f, 0.5f})},
            {"y", Tensor::FromValues<float>({2, 1}, {1, 0})},
            {"w", Tensor::FromValues<float>({2, 1}, {2, 4})}},
           {value})[0]
      .ToVector<float>();
}

TEST(SigmoidCrossEntropyWithLogits, TakesItsOptions) {
  const float negative = std::log1p(std::exp(-0.25f));  // of x = 0.25, where the label is 1
  const float other = 0.5f + std::log1p(std::exp(-0.5f));
  EXPECT_THAT(Values([](const Variable& x, const Variable& y, const Variable&) {
                return layers::SigmoidCrossEntropyWithLogits(x, y);
              }),
              Pointwise(FloatEq(), {negative, other}));
  EXPECT_THAT(Values([](const Variable& x, const Variable& y, const Variable&) {
                return layers::SigmoidCrossEntropyWithLogits(x, y, {.ignore_index = 0});
              }),
              Pointwise(FloatEq(), {negative, 0.0f}));
  EXPECT_THAT(Values([](const Variable& x, const Variable& y, const Variable&) {
                return layers::SigmoidCrossEntropyWithLogits(x, y, {.normalize = true});
              }),
              Pointwise(FloatEq(), {negative / 2, other / 2}));
  EXPECT_THAT(Values([](const Variable& x, const Variable& y, const Variable& w) {
                return layers::SigmoidCrossEntropyWithLogits(x, y, {.pos_weight = w});
              }),
              Pointwise(FloatEq(), {2 * negative, 0.5f + 4 * (other - 0.5f)}));
}

// Two steps, at each of which class 0 has the probability 0.6 and class 1 has 0.4. One label 1 has
// three paths, and with the blank 1, one label 0.
TEST(WarpCtc, SumsOverThePaths) {
  const auto loss_of = [](int64_t label, const layers::WarpCtcOptions& given) {
    Program main, startup;
    ProgramGuard guard(&main, &startup);
    const Variable logits = layers::Data("logits", {-1, -1, 2});
    const Variable labels = layers::Data("label", {-1, -1}, DType::kInt64);
    layers::WarpCtcOptions options = given;
    options.logits_length = layers::Data("steps", {-1}, DType::kInt64);
    options.label_length = layers::Data("length", {-1}, DType::kInt64);
    const Variable loss = layers::WarpCtc(logits, labels, options);
    const float yes = std::log(0.6f);
    const float no = std::log(0.4f);
    Executor executor;
    return executor.Compile(main)
        .Run({{"logits", Tensor::FromValues<float>({2, 1, 2}, {yes, no, yes, no})},
              {"label", Tensor::FromValues<int64_t>({1, 1}, {label})},
              {"steps", Tensor::FromValues<int64_t>({1}, {2})},
              {"length", Tensor::FromValues<int64_t>({1}, {1})}},
             {loss})[0]
        .Item<float>();
  };
  EXPECT_NEAR(loss_of(1, {}), -std::log(0.64), 1e-6);
  EXPECT_NEAR(loss_of(0, {.blank = 1}), -std::log(0.84), 1e-6);
  EXPECT_NEAR(loss_of(1, {.norm_by_times = true}), -std::log(0.64), 1e-6);
}

// The loss of two rows of log-probabilities whose labels, of these dims, are 2 and 0.
Tensor NllLossOf(const layers::NllLossOptions& options,
                 const std::vector<int64_t>& label_dims = {2}, bool is_weighted = false) {
  Program main, startup;
  ProgramGuard guard(&main, &startup);
  layers::NllLossOptions used = options;
  if (is_weighted) used.weight = layers::AssignValue({3}, std::vector<float>{1, 2, 3});
  const Variable x = layers::AssignValue({2, 3}, std::vector<float>{-1, -2, -4, -8, -16, -32});
  const Variable label = layers::AssignValue(label_dims, std::vector<int64_t>{2, 0});
  const Variable loss = layers::NllLoss(x, label, used);
  Executor executor;
  return executor.Compile(main).Run({}, {loss})[0];
}

TEST(NllLoss, TakesItsOptions) {
  EXPECT_THAT(NllLossOf({}).ToVector<float>(), ElementsAre(6));
  EXPECT_THAT(NllLossOf({.reduction = "sum"}).ToVector<float>(), ElementsAre(12));
  EXPECT_THAT(NllLossOf({.ignore_index = 2}).ToVector<float>(), ElementsAre(8));
  EXPECT_THAT(NllLossOf({}, {2}, /*is_weighted=*/true).ToVector<float>(), ElementsAre(5));
}

TEST(NllLoss, WithoutAReductionHasTheDimsOfTheLabels) {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{2}, std::vector<int64_t>{2, 1}}) {
    const Tensor losses = NllLossOf({.reduction = "none"}, dims);
    EXPECT_EQ(losses.shape(), Shape(dims));
    EXPECT_THAT(losses.ToVector<float>(), ElementsAre(4, 8));
  }
}

TEST(BinaryCrossEntropyWithLogits, WeighsTheLabel1) {
  const float first = std::log1p(std::exp(-0.25f));  // of x = 0.25, where the label is 1
  const float other = 0.5f + std::log1p(std::exp(-0.5f));
  EXPECT_THAT(Values([](const Variable& x, const Variable& y, const Variable&) {
                return layers::BinaryCrossEntropyWithLogits(x, y);
              }),
              Pointwise(FloatEq(), {first, other}));
  EXPECT_THAT(Values([](const Variable& x, const Variable& y, const Variable& w) {
                return layers::BinaryCrossEntropyWithLogits(x, y, {.pos_weight = w});
              }),
              Pointwise(FloatEq(), {2 * first, other}));
}

TEST(BinaryCrossEntropyWithLogits, BroadcastsTheWeightOfEachClass) {
  // Columns of x, y and w become classes. Logits far from 0 lose nothing.
  const auto row = [](const Variable& v) { return layers::Reshape(v, {1, 2}); };
  const float first = std::log1p(std::exp(-0.25f));
  EXPECT_THAT(Values([&](const Variable& x, const Variable& y, const Variable& w) {
                return layers::BinaryCrossEntropyWithLogits(
                    row(x), row(y), {.pos_weight = layers::Reshape(w, {2})});
              }),
              Pointwise(FloatEq(), {2 * first, 0.5f + std::log1p(std::exp(-0.5f))}));
  EXPECT_THAT(Values([&](const Variable& x, const Variable& y, const Variable& w) {
                return layers::BinaryCrossEntropyWithLogits(
                    -400.0 * x, y, {.pos_weight = layers::Reshape(w, {2, 1})});
              }),
              Pointwise(FloatEq(), {200.0f, 0.0f}));
}

TEST(BinaryCrossEntropy, IsThatOfProbabilitiesOfAnyShape) {
  EXPECT_THAT(Values([](const Variable& x, const Variable& y, const Variable&) {
                return layers::BinaryCrossEntropy(layers::Reshape(x, {1, 2, 1}),
                                                  layers::Reshape(y, {1, 2, 1}));
              }),
              Pointwise(FloatEq(), {-std::log(0.25f), -std::log(0.5f)}));
  EXPECT_THAT(Values([](const Variable&, const Variable& y, const Variable&) {
                return layers::BinaryCrossEntropy(1 - y, y);
              }),
              Pointwise(FloatEq(), {100.0f, 100.0f}));
}

TEST(LogLoss, TakesItsEpsilon) {
  EXPECT_THAT(Values([](const Variable& x, const Variable& y, const Variable&) {
                return layers::LogLoss(x, y, 0.25f);
              }),
              Pointwise(FloatEq(), {-std::log(0.5f), -std::log(0.75f)}));
}

TEST(HuberLoss, IsAParabolaUpToDelta) {
  EXPECT_THAT(Values([](const Variable& x, const Variable&, const Variable& w) {
                return layers::HuberLoss(x, w);  // distances of 1.75 and 3.5
              }),
              Pointwise(FloatEq(), {1.25f, 3.0f}));
  EXPECT_THAT(Values([](const Variable& x, const Variable& y, const Variable&) {
                return layers::HuberLoss(x, y, 0.5f);
              }),
              Pointwise(FloatEq(), {0.5f * (0.75f - 0.25f), 0.125f}));
}

TEST(SmoothL1, TakesItsWeightsAndSigma) {
  EXPECT_THAT(Values([](const Variable& x, const Variable& y, const Variable&) {
                return layers::SmoothL1(x, y);
              }),
              Pointwise(FloatEq(), {0.28125f, 0.125f}));
  EXPECT_THAT(Values([](const Variable& x, const Variable& y, const Variable& w) {
                return layers::SmoothL1(x, y, {.inside_weight = x, .outside_weight = w});
              }),
              Pointwise(FloatEq(), {0.03515625f, 0.125f}));
  EXPECT_THAT(Values([](const Variable& x, const Variable& y, const Variable&) {
                return layers::SmoothL1(x, y, {.sigma = 2.0f});
              }),
              Pointwise(FloatEq(), {0.625f, 0.375f}));
  EXPECT_THAT(InvalidArgumentText([] {
                Values([](const Variable& x, const Variable& y, const Variable& w) {
                  return layers::SmoothL1(x, y, {.inside_weight = w});
                });
              }),
              HasSubstr("only one of InsideWeight and OutsideWeight is given"));
}

TEST(KldivLoss, TakesItsReduction) {
  const auto loss = [](const char* reduction) {
    return Values([=](const Variable& x, const Variable&, const Variable& w) {
      return layers::KldivLoss(x, w, reduction);
    });
  };
  const float first = 2 * (std::log(2.0f) - 0.25f);
  const float second = 4 * (std::log(4.0f) - 0.5f);
  EXPECT_THAT(loss("none"), Pointwise(FloatEq(), {first, second}));
  EXPECT_THAT(loss("sum"), Pointwise(FloatEq(), {first + second}));
  EXPECT_THAT(Values([](const Variable& x, const Variable&, const Variable& w) {
                return layers::KldivLoss(x, w);
              }),
              Pointwise(FloatEq(), {(first + second) / 2}));
}

TEST(MarginRankLoss, CountsWhatIsInTheWrongOrder) {
  EXPECT_THAT(Values([](const Variable& x, const Variable& y, const Variable& w) {
                return layers::MarginRankLoss(y, x, w, 0.5f);
              }),
              Pointwise(FloatEq(), {2.25f, 0.5f}));
}

TEST(MarginRankLoss, HasNoMarginUnlessTold) {
  EXPECT_THAT(Values([](const Variable& x, const Variable& y, const Variable& w) {
                return layers::MarginRankLoss(y * 2.0 - 1.0, x, w);  // labels of 1 and -1
              }),
              Pointwise(FloatEq(), {1.75f, 0.0f}));
}

// [N, 1] and [N] would be broadcast to [N, N], of which the mean is a wrong loss.
TEST(Losses, CompareNoPredictionWithALabelOfAnotherShape) {
  using Loss = std::function<Variable(const Variable& x, const Variable& label)>;
  const std::vector<std::pair<const char*, Loss>> losses = {
      {"square_error_cost",
       [](const Variable& x, const Variable& label) { return layers::SquareErrorCost(x, label); }},
      {"sigmoid_cross_entropy_with_logits",
       [](const Variable& x, const Variable& label) {
         return layers::SigmoidCrossEntropyWithLogits(x, label);
       }},
      {"log_loss",
       [](const Variable& x, const Variable& label) { return layers::LogLoss(x, label); }},
      {"huber_loss",
       [](const Variable& x, const Variable& label) { return layers::HuberLoss(x, label); }},
      {"smooth_l1_loss",
       [](const Variable& x, const Variable& label) { return layers::SmoothL1(x, label); }},
      {"kldiv_loss",
       [](const Variable& x, const Variable& label) { return layers::KldivLoss(x, label); }},
      {"margin_rank_loss", [](const Variable& x, const Variable& label) {
         return layers::MarginRankLoss(label, x, x);
       }}};
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable column = layers::Data("column", {-1, 1});
  const Variable row = layers::Data("row", {-1});
  for (const auto& [name, loss] : losses) {
    const auto message = [&](const Variable& x, const Variable& label) {
      return ErrorText([&] { loss(x, label); });
    };
    EXPECT_THAT(message(column, row),
                AllOf(HasSubstr("loss_test.cc:"),
                      HasSubstr(StrCat(": ", name,
                                       ": \"column\" is of shape [-1, 1] and \"row\" of "
                                       "shape [-1], expected one shape")),
                      HasSubstr("Unsqueeze with axis 1 makes [N, 1]")));
    EXPECT_THAT(message(row, column),
                HasSubstr("\"row\" is of shape [-1] and \"column\" of shape [-1, 1]"));
    EXPECT_NO_THROW(loss(column, column));
  }
}

TEST(Losses, TakeHardLabelsWithoutADimOfOne) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable logits = layers::Data("logits", {-1, 3});
  const Variable label = layers::Data("label", {-1}, DType::kInt64);
  const Variable fused = layers::SoftmaxWithCrossEntropy(logits, label);
  const Variable apart = layers::CrossEntropy(layers::Softmax(logits), label);
  const Variable accuracy = layers::Accuracy(logits, label);
  EXPECT_THAT(fused.dims(), ElementsAre(-1, 1));
  EXPECT_THAT(apart.dims(), ElementsAre(-1));
  Executor executor;
  const std::vector<Tensor> found =
      executor.Run(main,
                   {{"logits", Tensor::FromValues<float>({2, 3}, {0, 0, 0, 1, 1, 1})},
                    {"label", Tensor::FromValues<int64_t>({2}, {0, 2})}},
                   {fused, apart, accuracy});
  EXPECT_THAT(found[0].ToVector<float>(), Pointwise(FloatEq(), {std::log(3.0f), std::log(3.0f)}));
  EXPECT_THAT(found[1].ToVector<float>(), Pointwise(FloatEq(), {std::log(3.0f), std::log(3.0f)}));
  EXPECT_EQ(found[2].Item<float>(), 0.5f);
}

TEST(LabelSmooth, TakesItsPrior) {
  EXPECT_THAT(Values([](const Variable&, const Variable& y, const Variable&) {
                return layers::LabelSmooth(y, {.epsilon = 0.25f});
              }),
              Pointwise(FloatEq(), {1.0f, 0.25f}));
  EXPECT_THAT(Values([](const Variable&, const Variable& y, const Variable&) {
                const Variable prior = layers::FillConstant({1}, DType::kFloat32, 0.5);
                return layers::LabelSmooth(y, {.prior_dist = prior, .epsilon = 0.25f});
              }),
              Pointwise(FloatEq(), {0.875f, 0.125f}));
}

}  // namespace
}  // namespace skiff
