#include "models/common/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "framework/base/error.h"
#include "models/common/augmentation.h"
#include "models/common/dataset_choice.h"
#include "models/common/generated_images.h"
#include "tests/harness/error_text.h"

namespace skiff::models {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

ImageDataset Ramp() {
  ImageDataset dataset{.name = "ramp", .channels = 1, .height = 2, .width = 3, .classes = 2};
  dataset.pixels = {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60};
  dataset.labels = {0, 1};
  return dataset;
}

const Normalization kBytes = {.mean = {0}, .deviation = {1.0f / 255}};

std::vector<float> Written(const Augmentation& augmentation) {
  std::vector<float> out(6);
  WriteImage(Ramp(), 0, kBytes, augmentation, out);
  for (float& value : out) value = std::round(value);
  return out;
}

TEST(Dataset, SplitsWithoutLosingImages) {
  const auto [train, rest] = HoldBackLast(Ramp(), 1);
  EXPECT_THAT(train.labels, ElementsAre(0));
  EXPECT_THAT(rest.labels, ElementsAre(1));
  EXPECT_EQ(rest.Image(0)[5], 60);
  EXPECT_EQ(InvalidArgumentText([] { HoldBackLast(Ramp(), 2); }),
            "ramp: 2 of 2 images to hold back: expected to hold back and to keep at least one");
  EXPECT_EQ(InvalidArgumentText([] { HoldBackLast(ImageDataset{.name = "none"}, 1); }),
            "none: 1 of 0 images to hold back: expected to hold back and to keep at least one");
  EXPECT_EQ(
      InvalidArgumentText([] { FirstImages(Ramp(), 3); }),
      "ramp: the first 3 of 2 images requested: expected at least one, and no more than there "
      "are");
}

TEST(Dataset, RefusesToMeasureNoImages) {
  EXPECT_EQ(InvalidArgumentText([] { MeasureNormalization(ImageDataset{.name = "none"}); }),
            "none: no images to measure mean and deviation of");
}

TEST(Dataset, MeasuresMeanAndDeviation) {
  ImageDataset dataset = Ramp();
  dataset.pixels = {0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255};
  const Normalization measured = MeasureNormalization(dataset);
  EXPECT_THAT(measured.mean, ElementsAre(FloatNear(0.5f, 1e-6f)));
  EXPECT_THAT(measured.deviation, ElementsAre(FloatNear(0.5f, 1e-6f)));
  dataset.pixels.assign(12, 9);
  EXPECT_THAT(MeasureNormalization(dataset).deviation, ElementsAre(1.0f));
}

TEST(Augmentation, FlipsAndShifts) {
  EXPECT_THAT(Written({}), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(Written({.flip = true}), ElementsAre(3, 2, 1, 6, 5, 4));
  EXPECT_THAT(Written({.shift_y = 1}), ElementsAre(4, 5, 6, 0, 0, 0));
  EXPECT_THAT(Written({.shift_x = -1}), ElementsAre(0, 1, 2, 0, 4, 5));
}

TEST(Augmentation, DependsOnSeedEpochAndSampleAlone) {
  const AugmentationOptions options{.flip = true, .padding = 4};
  int flips = 0;
  int changes = 0;
  for (int64_t sample = 0; sample < 1000; ++sample) {
    const Augmentation drawn = DrawAugmentation(options, 1, 2, sample);
    const Augmentation again = DrawAugmentation(options, 1, 2, sample);
    EXPECT_EQ(drawn.shift_x, again.shift_x);
    EXPECT_LE(std::abs(drawn.shift_x), 4);
    EXPECT_LE(std::abs(drawn.shift_y), 4);
    flips += drawn.flip;
    changes += drawn.shift_x != DrawAugmentation(options, 1, 3, sample).shift_x;
  }
  EXPECT_NEAR(flips, 500, 80);
  EXPECT_NEAR(changes, 889, 60);  // 8 of 9 differ by chance
}

TEST(GeneratedImages, DoNotDependOnHowManyThereAre) {
  const ImageDataset few = GenerateImages({.images = 12});
  const ImageDataset many = GenerateImages({.images = 40});
  for (int64_t i = 0; i < few.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(few.Image(i), many.Image(i))) << i;
    EXPECT_EQ(few.labels[i], i % 10);
  }
}

TEST(GeneratedImages, DifferBySeedAndStream) {
  const ImageDataset images = GenerateImages({.images = 1});
  EXPECT_NE(images.pixels, GenerateImages({.images = 1, .seed = 2}).pixels);
  EXPECT_NE(
      images.pixels,
      GenerateImages({.images = 1, .stream = training::DataStream::kValidationSamples}).pixels);
}

TEST(DatasetChoice, RefusesUnknownTexts) {
  for (const char* data : {"imagenet", "mnist", "mnist:", "cifar:x", "", ":"}) {
    EXPECT_EQ(
        InvalidArgumentText([&] { LoadDatasets({.data = data}); }),
        StrCat("data \"", data, "\": expected generated, mnist:DIR, cifar10:DIR or cifar100:DIR"));
  }
  EXPECT_EQ(InvalidArgumentText([] { LoadDatasets({.limit_samples = -1}); }),
            "limit_samples = -1, validation_samples = 0: expected no negative numbers");
  EXPECT_EQ(InvalidArgumentText([] { AugmentationFromName("rotate", "generated"); }),
            "augment \"rotate\": expected auto, none, crop or crop_flip");
  EXPECT_EQ(InvalidArgumentText([] { DrawAugmentation({.padding = -1}, 1, 0, 0); }),
            "padding = -1 for random crops: expected no negative number");
}

TEST(DatasetChoice, ChangesOnlyImagesThatBearIt) {
  EXPECT_TRUE(AugmentationFromName("auto", "cifar10:x").flip);
  EXPECT_FALSE(AugmentationFromName("auto", "mnist:x").flip);
  EXPECT_EQ(LoadDatasets({.limit_samples = 30, .validation_samples = 20}).train.size(), 30);
}

}  // namespace
}  // namespace skiff::models
