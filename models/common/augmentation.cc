#include "models/common/augmentation.h"

#include "framework/base/error.h"
#include "framework/training/data_random.h"

namespace skiff::models {
namespace {

// Maps a random word to [-padding, padding] by multiplying and taking the high bits (Lemire, "Fast
// Random Integer Generation in an Interval", 2019, without its rejection step: the bias is below
// (2 * padding + 1) / 2^32).
int32_t UniformShift(uint32_t word, int32_t padding) {
  const auto choices = static_cast<uint64_t>(2 * int64_t{padding} + 1);
  return static_cast<int32_t>(word * choices >> 32) - padding;
}

}  // namespace

Augmentation DrawAugmentation(const AugmentationOptions& options, uint64_t seed, int64_t epoch,
                              int64_t sample) {
  SKIFF_ENFORCE(options.padding >= 0, kInvalidArgument, "padding = ", options.padding,
                " for random crops: expected no negative number");
  // Counter-based: the sample is the position, so a draw needs no state, and readers that skip
  // samples or read ahead in other threads get the same numbers.
  const Philox philox = training::DataRandom(seed, training::DataStream::kAugmentation, epoch);
  const Philox::Block words = philox.At(static_cast<uint64_t>(sample));
  return {.flip = options.flip && (words[0] & 1) != 0,
          .shift_y = UniformShift(words[1], options.padding),
          .shift_x = UniformShift(words[2], options.padding)};
}

void WriteImage(const ImageDataset& dataset, int64_t index, const Normalization& normalization,
                const Augmentation& augmentation, std::span<float> out) {
  const int32_t height = dataset.height;
  const int32_t width = dataset.width;
  const auto image = dataset.Image(index);
  float* next = out.data();
  for (int32_t c = 0; c < dataset.channels; ++c) {
    // (byte / 255 - mean) / deviation as one multiplication and one addition.
    const float scale = 1.0f / (255.0f * normalization.deviation[c]);
    const float offset = -normalization.mean[c] / normalization.deviation[c];
    const uint8_t* plane = image.data() + int64_t{c} * height * width;
    for (int32_t y = 0; y < height; ++y) {
      const int32_t from_y = y + augmentation.shift_y;
      const bool row_inside = from_y >= 0 && from_y < height;
      for (int32_t x = 0; x < width; ++x) {
        const int32_t from_x = (augmentation.flip ? width - 1 - x : x) + augmentation.shift_x;
        const bool inside = row_inside && from_x >= 0 && from_x < width;
        const float byte = inside ? plane[int64_t{from_y} * width + from_x] : 0.0f;
        *next++ = byte * scale + offset;
      }
    }
  }
}

}  // namespace skiff::models
