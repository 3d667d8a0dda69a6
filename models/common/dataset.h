// Images with class labels, in memory, as they are in files: bytes, not yet normalised.
//
// Plain data. Several threads may read one dataset.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace skiff::models {

struct ImageDataset {
  std::string name;  // for messages
  int32_t channels = 0;
  int32_t height = 0;
  int32_t width = 0;
  int32_t classes = 0;
  std::vector<uint8_t> pixels;  // [size, channels, height, width]
  std::vector<int64_t> labels;  // each in [0, classes)

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  int64_t image_elements() const { return int64_t{channels} * height * width; }
  // Returns the pixels [channels, height, width] of one image. `index` must be in [0, size).
  std::span<const uint8_t> Image(int64_t index) const {
    return {pixels.data() + index * image_elements(), static_cast<size_t>(image_elements())};
  }
};

// Returns the first `count` images. Throws Error (kInvalidArgument) unless 1 <= count <= size.
ImageDataset FirstImages(const ImageDataset& dataset, int64_t count);
// Splits the dataset: returns all but the last `count` images, and the last `count`. Throws Error
// (kInvalidArgument) unless 1 <= count < size.
std::pair<ImageDataset, ImageDataset> HoldBackLast(const ImageDataset& dataset, int64_t count);

// A byte of channel c becomes the number (byte / 255 - mean[c]) / deviation[c].
struct Normalization {
  std::vector<float> mean;
  std::vector<float> deviation;
};

// Returns the mean and standard deviation of each channel. A channel of a single value gets
// deviation 1. Throws Error (kInvalidArgument) for an empty dataset.
Normalization MeasureNormalization(const ImageDataset& dataset);

// A training and a validation set that share shape and classes.
struct DatasetPair {
  ImageDataset train;
  ImageDataset validation;
};

}  // namespace skiff::models
