// Where PyTorch and PaddlePaddle 2 have the same convention, layers compute by default what both of
// them do: docs/changes.md. The expected numbers are theirs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/nn.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/executor/executor.h"

namespace skiff {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Ge;
using ::testing::Pointwise;

using Layer = std::function<Variable(const Variable& x)>;
using Numbers = std::vector<float>;

// layer(x); the parameters are as the startup program makes them.
Tensor Computed(const Layer& layer, const Tensor& x) {
  Program main, startup;
  main.seed = startup.seed = 3;
  const ProgramGuard guard(&main, &startup);
  const Variable y = layer(
      layers::Data("x", std::vector<int64_t>(x.shape().dims().begin(), x.shape().dims().end())));
  Executor executor;
  executor.Run(startup);
  return executor.Run(main, {{"x", x}}, {y})[0];
}

auto AreNear(const Numbers& expected) { return Pointwise(FloatNear(1e-6f), expected); }

Tensor Counted(const Shape& shape) {
  Tensor tensor(shape, DType::kFloat32);
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    tensor.data<float>()[i] = static_cast<float>(i);
  }
  return tensor;
}

// torch.nn.MaxPool2d(2), torch.nn.AvgPool2d(2)
TEST(Conventions, PoolingStepsByItsKernel) {
  const Tensor image = Counted({1, 1, 4, 4});
  EXPECT_THAT(Computed([](const Variable& x) { return layers::Pool2d(x, {.kernel = 2}); }, image)
                  .ToVector<float>(),
              ElementsAre(5, 7, 13, 15));
  EXPECT_THAT(
      Computed([](const Variable& x) { return layers::Pool2d(x, {.kernel = 2, .type = "avg"}); },
               image)
          .ToVector<float>(),
      ElementsAre(2.5f, 4.5f, 10.5f, 12.5f));
}

// torch.nn.Dropout(0.75)
TEST(Conventions, DropoutScalesInTraining) {
  Tensor ones({64}, DType::kFloat32);
  std::fill_n(ones.data<float>(), 64, 1.0f);
  const Numbers trained =
      Computed([](const Variable& x) { return layers::Dropout(x, 0.75f); }, ones).ToVector<float>();
  EXPECT_THAT(trained, Each(::testing::AnyOf(0.0f, 4.0f)));
  EXPECT_THAT(std::ranges::count(trained, 4.0f), Ge(1));
  EXPECT_EQ(
      Computed([](const Variable& x) { return layers::Dropout(x, 0.75f, {.is_test = true}); }, ones)
          .ToVector<float>(),
      ones.ToVector<float>());
}

// torch.nn.functional.interpolate(x, …, mode="bilinear"), and mode="nearest"
TEST(Conventions, ResizingMeasuresFromTheCentersOfPixels) {
  const Tensor squares = Tensor::FromValues<float>({1, 1, 2, 3}, {0, 1, 4, 9, 16, 25});
  const auto resized = [&](const Layer& layer) {
    return Computed(layer, squares).ToVector<float>();
  };
  EXPECT_THAT(resized([](const Variable& x) {
                return layers::ResizeBilinear(x, {.size = layers::Extent2d(3, 4)});
              }),
              AreNear({0, 0.625f, 2.125f, 4, 4.5f, 7, 10.75f, 14.5f, 9, 13.375f, 19.375f, 25}));
  EXPECT_THAT(resized([](const Variable& x) { return layers::ResizeBilinear(x, {.scale = 1.5f}); }),
              AreNear({0, 0.5f, 1.5f, 3.5f, 4.5f, 6.5f, 9.5f, 13.5f, 9, 12.5f, 17.5f, 23.5f}));
  EXPECT_THAT(resized([](const Variable& x) {
                return layers::ResizeNearest(x, {.size = layers::Extent2d(3, 5)});
              }),
              AreNear({0, 0, 1, 1, 4, 0, 0, 1, 1, 4, 9, 9, 16, 16, 25}));
  EXPECT_THAT(resized([](const Variable& x) { return layers::ResizeNearest(x, {.scale = 1.5f}); }),
              AreNear({0, 0, 1, 4, 0, 0, 1, 4, 9, 9, 16, 25}));
}

// torch.nn.Linear(3, 2) and torch.nn.LayerNorm(3) of [N, T, 3]
TEST(Conventions, FcAndLayerNormWorkOnTheLastDim) {
  const Tensor tokens = Tensor::FromValues<float>({1, 2, 3}, {1, 2, 4, 0, 0, 6});
  const ParamAttr sums = {.initializer = initializer::FromArray(Numbers{1, 0, 1, 0, 1, 1})};
  const Tensor product =
      Computed([&](const Variable& x) { return layers::Fc(x, 2, {.param_attr = sums}); }, tokens);
  EXPECT_EQ(product.shape(), Shape({1, 2, 2}));
  EXPECT_THAT(product.ToVector<float>(), ElementsAre(7, 4, 6, 6));
  EXPECT_THAT(
      Computed([](const Variable& x) { return layers::LayerNorm(x); }, tokens).ToVector<float>(),
      AreNear({-1.06904137f, -0.26726028f, 1.33630180f, -0.70710635f, -0.70710635f, 1.41421270f}));
}

// torch.nn.LeakyReLU(), torch.nn.Hardsigmoid()
TEST(Conventions, ActivationsHaveTheirSlopes) {
  const Tensor x = Tensor::FromValues<float>({4}, {-2, 0, 1, 3});
  EXPECT_THAT(Computed([](const Variable& v) { return layers::LeakyRelu(v); }, x).ToVector<float>(),
              AreNear({-0.02f, 0, 1, 3}));
  EXPECT_THAT(
      Computed([](const Variable& v) { return layers::HardSigmoid(v); }, x).ToVector<float>(),
      AreNear({1.0f / 6, 0.5f, 2.0f / 3, 1}));
}

// torch.chunk(x, 2)
TEST(Conventions, SplitsAlongTheFirstDim) {
  const Tensor x = Counted({4, 3});
  EXPECT_THAT(
      Computed([](const Variable& v) { return layers::Split(v, 2)[1]; }, x).ToVector<float>(),
      ElementsAre(6, 7, 8, 9, 10, 11));
  EXPECT_THAT(Computed(
                  [](const Variable& v) {
                    return layers::SplitSections(v, {3, 1})[1];
                  },
                  x)
                  .ToVector<float>(),
              ElementsAre(9, 10, 11));
}

}  // namespace
}  // namespace skiff
