// Runs the code of docs/recipes.md as it is there. BUILD takes it out of the page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "skiff/skiff.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

#include "tests/docs/mobilenet.inc"
#include "tests/docs/siamese.inc"
#include "tests/docs/transfer.inc"
#include "tests/docs/vae.inc"

constexpr int64_t kRows = 16;
constexpr int64_t kFeatures = 8;
constexpr int64_t kSide = 16;

// Numbers in [0, 1) that look random.
float Noise(int64_t i) { return static_cast<float>((i * 2654435761u >> 7) % 1000) / 1000.0f; }

Tensor Filled(const Shape& shape, float (*value)(int64_t index)) {
  Tensor tensor(shape, DType::kFloat32);
  for (int64_t i = 0; i < tensor.element_count(); ++i) tensor.data<float>()[i] = value(i);
  return tensor;
}

// Images of noise that are brighter in odd rows of the batch, which is their class.
FeedList BrightAndDarkImages() {
  Tensor label({kRows}, DType::kInt64);
  for (int64_t i = 0; i < kRows; ++i) label.data<int64_t>()[i] = i % 2;
  constexpr auto kPixel = [](int64_t i) {
    return Noise(i) * 0.3f + (i / (3 * kSide * kSide) % 2 == 0 ? 0.0f : 0.7f);
  };
  return {{"image", Filled({kRows, 3, kSide, kSide}, +kPixel)}, {"label", label}};
}

TEST(RecipesPage, TrainsAVariationalAutoencoder) {
  // Two kinds of images: the first or the second half is bright.
  const Tensor batch = Filled({kRows, kPixels}, [](int64_t i) {
    return i / kPixels % 2 == i % kPixels / (kPixels / 2) ? 1.0f : 0.0f;
  });
  float last_loss = 0;
#include "tests/docs/vae_run.inc"
  // As if nothing were known of a pixel, the loss were 16 · log(2) = 11.1.
  EXPECT_LT(last_loss, 6.0f);
  EXPECT_EQ(sampled.shape(), Shape({8, kPixels}));
  // Samples look like images: both halves differ.
  for (int64_t n = 0; n < 8; ++n) {
    const float* pixels = sampled.data<float>() + n * kPixels;
    EXPECT_THAT(pixels[0] + pixels[kPixels - 1], testing::FloatNear(1.0f, 0.6f)) << n;
  }
}

TEST(RecipesPage, TrainsAMobileNetWithAverages) {
  const FeedList feeds = BrightAndDarkImages();
  float loss_of_averages = 0;
  float loss_of_weights = 0;
#include "tests/docs/mobilenet_run.inc"
  EXPECT_LT(loss_of_averages, 0.6f);
  EXPECT_NE(loss_of_averages, loss_of_weights);
}

TEST(RecipesPage, TrainsASiameseNetwork) {
  // x and `same` are near each other, `other` isn't.
  constexpr auto kX = [](int64_t i) { return Noise(i); };
  constexpr auto kSame = [](int64_t i) { return Noise(i) + 0.1f * Noise(i + 977); };
  constexpr auto kOther = [](int64_t i) { return Noise(i + 5000); };
  const FeedList feeds = {{"x", Filled({kRows, kFeatures}, +kX)},
                          {"same", Filled({kRows, kFeatures}, +kSame)},
                          {"other", Filled({kRows, kFeatures}, +kOther)}};
  float last_loss = 1;
#include "tests/docs/siamese_run.inc"
  EXPECT_LT(last_loss, 0.2f);
  // One set of parameters for three branches.
  EXPECT_THAT(exe.scope().Names(),
              testing::IsSupersetOf({"embed.w0", "embed.scale", "embed.mean", "embed.w1"}));
  EXPECT_NE(exe.scope().Get("embed.mean").values<float>()[0], 0.0f);
}

TEST(RecipesPage, PutsANewHeadOnASavedModel) {
  const TempDirectory temp;
  const std::string directory = temp.path();
  std::string features;
  std::vector<float> weights;
  {
    Program main, startup;
    const ProgramGuard guard(&main, &startup);
    const Variable image = layers::Data("image", {-1, 3, kSide, kSide});
    const Variable pooled = layers::Pool2d(Block(image, 8, 2), {.type = "avg", .global = true});
    features = pooled.name();
    const Variable scores = layers::Fc(pooled, 5, {.num_flatten_dims = 1});
    Executor exe;
    exe.Run(startup);
    SaveInferenceModel(directory, {"image"}, {scores}, main, exe.scope());
    weights = exe.scope().Get("conv2d_1.w_0").ToVector<float>();
  }
  const FeedList feeds = BrightAndDarkImages();
  float last_loss = 1;
#include "tests/docs/transfer_run.inc"
  EXPECT_LT(last_loss, 0.5f);
  EXPECT_EQ(exe.scope().Get("conv2d_1.w_0").ToVector<float>(), weights);
}

}  // namespace
}  // namespace skiff
