// What the documentation shows, as a user writes it: skiff.h alone, no macros.
#include <gtest/gtest.h>

#include <vector>

#include "skiff/skiff.h"

namespace {

using namespace skiff;  // NOLINT(google-build-using-namespace): as a user does

// Images of two kinds: bright on the left, bright on the right.
Tensor Images() {
  std::vector<float> pixels(4 * 28 * 28);
  for (size_t i = 0; i < pixels.size(); ++i) {
    const bool left = i % 28 < 14;
    const bool second_kind = i / (28 * 28) % 2 == 1;
    pixels[i] = left != second_kind ? 1.0f : 0.0f;
  }
  return Tensor::FromValues<float>({4, 1, 28, 28}, pixels);
}

TEST(PublicApi, TrainsAConvolutionalNetwork) {
  Program main, startup;
  startup.seed = 1;
  ProgramGuard guard(&main, &startup);
  auto image = layers::Data("image", {-1, 1, 28, 28}, DType::kFloat32);
  auto label = layers::Data("label", {-1, 1}, DType::kInt64);
  auto hidden = layers::Conv2d(image, {.filters = 8, .kernel = 3, .act = "relu"});
  hidden = layers::Pool2d(hidden, {.kernel = 2, .stride = 2});
  auto logits = layers::Fc(layers::Flatten(hidden), 10);
  auto loss = layers::Mean(layers::SoftmaxWithCrossEntropy(logits, label));
  auto accuracy = layers::Accuracy(logits, label);
  optimizer::Adam({.learning_rate = 1e-3f, .clip = ClipByGlobalNorm(1.0f)}).Minimize(loss);

  Executor exe(Place::Cpu());
  exe.Run(startup);
  auto step = exe.Compile(main, {.memory = {.policy = ReusePolicy::kArena}});
  const Tensor images = Images();
  const Tensor labels = Tensor::FromValues<int64_t>({4, 1}, {0, 1, 0, 1});
  std::vector<Tensor> values;
  for (int i = 0; i < 50; ++i) {
    values = step.Run({{"image", images}, {"label", labels}}, {loss, accuracy});
  }
  EXPECT_LT(values[0].Item<float>(), 0.1f);
  EXPECT_EQ(values[1].Item<float>(), 1.0f);
}

TEST(PublicApi, FeedsComputesAndFetchesScalars) {
  Program main, startup;
  ProgramGuard guard(&main, &startup);
  auto x = layers::Data("x", {-1, 2});
  auto limit = layers::Data("limit", {});
  auto total = layers::ReduceSum(layers::ElementwiseMin(x, limit));
  auto scaled = layers::Assign(layers::Mean(x) * total + 1.0);

  Executor exe(Place::Cpu());
  auto run = exe.Compile(main);
  const std::vector<Tensor> values =
      run.Run({{"x", Tensor::FromValues<float>({2, 2}, {1, 2, 3, 4})},
               {"limit", Tensor::FromValues<float>({}, {2.5f})}},
              {total, scaled, "limit"});
  EXPECT_EQ(values[0].Item<float>(), 1 + 2 + 2.5f + 2.5f);
  EXPECT_EQ(values[1].Item<float>(), 2.5f * 8 + 1);
  for (const Tensor& value : values) EXPECT_EQ(value.shape(), Shape());
}

TEST(PublicApi, EvaluatesWithMovingStatistics) {
  Program main, startup;
  startup.seed = 1;
  ProgramGuard guard(&main, &startup);
  auto image = layers::Data("image", {-1, 1, 28, 28});
  auto label = layers::Data("label", {-1, 1}, DType::kInt64);
  auto hidden = layers::Conv2d(image, {.filters = 4, .kernel = 3, .bias_attr = false});
  auto normal = layers::BatchNorm(hidden, {.act = "relu"});
  auto logits = layers::Fc(layers::Flatten(layers::Dropout(normal, 0.2f)), 2);
  auto loss = layers::Mean(layers::SoftmaxWithCrossEntropy(logits, label));
  auto rate = learning_rate::Cosine({.start = 0.01f, .steps_per_epoch = 10, .epochs = 10});
  optimizer::Momentum({.learning_rate = rate, .regularization = L2Decay(1e-4f)}).Minimize(loss);

  Executor exe(Place::Cpu());
  exe.Run(startup);
  auto step = exe.Compile(main);
  auto evaluate = exe.Compile(*main.CloneForTest({"dropout", "batch_norm"}));
  const FeedList batch{{"image", Images()},
                       {"label", Tensor::FromValues<int64_t>({4, 1}, {0, 1, 0, 1})}};
  for (int i = 0; i < 100; ++i) step.Run(batch, {loss});
  const float first = evaluate.Run(batch, {loss})[0].Item<float>();
  EXPECT_LT(first, 0.5f);
  EXPECT_EQ(evaluate.Run(batch, {loss})[0].Item<float>(), first);
}

// Moving statistics move before the loss sees its labels, the schedule's counter too.
TEST(PublicApi, AStepThatABadLabelEndsLeavesNoTrace) {
  Program main, startup;
  main.seed = startup.seed = 3;
  ProgramGuard guard(&main, &startup);
  auto image = layers::Data("image", {-1, 1, 28, 28});
  auto label = layers::Data("label", {-1, 1}, DType::kInt64);
  auto rate = learning_rate::Cosine({.start = 0.01f, .steps_per_epoch = 2, .epochs = 10});
  auto hidden = layers::Conv2d(image, {.filters = 4, .kernel = 3, .bias_attr = false});
  auto normal = layers::BatchNorm(hidden, {.act = "relu"});
  auto logits = layers::Fc(layers::Flatten(layers::Dropout(normal, 0.2f)), 2);
  auto loss = layers::Mean(layers::SoftmaxWithCrossEntropy(logits, label));
  optimizer::Adam({.learning_rate = rate}).Minimize(loss);

  const auto hash_after = [&](bool disturbed) {
    Executor exe(Place::Cpu());
    exe.Run(startup);
    auto step = exe.Compile(main);
    const auto run = [&](int64_t last_label) {
      step.Run({{"image", Images()},
                {"label", Tensor::FromValues<int64_t>({4, 1}, {0, 1, 0, last_label})}},
               {loss});
    };
    for (int i = 0; i < 4; ++i) {
      if (disturbed) {
        EXPECT_THROW(run(2), Error);
        EXPECT_THROW(run(-1), Error);
      }
      run(1);
    }
    return WeightsHash(exe.scope(), exe.scope().Names());
  };
  EXPECT_EQ(hash_after(true), hash_after(false));
}

TEST(PublicApi, AProgramPrintsAndParses) {
  Program main, startup;
  ProgramGuard guard(&main, &startup);
  auto x = layers::Data("x", {-1, 4});
  optimizer::Sgd({.learning_rate = 0.1f}).Minimize(layers::Mean(layers::Fc(x, 3, {.act = "tanh"})));
  EXPECT_TRUE(*ParseProgramText(PrintProgram(main)) == main);
}

}  // namespace
