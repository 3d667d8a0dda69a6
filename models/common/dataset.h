// Images with class labels, in memory, as the files have them: bytes, not yet normalised.
//
// Plain data. Many threads may read one dataset.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace skiff::models {

struct ImageDataset {
  std::string name;  // as messages call it
  int32_t channels = 0;
  int32_t height = 0;
  int32_t width = 0;
  int32_t classes = 0;
  std::vector<uint8_t> pixels;  // [size, channels, height, width]
  std::vector<int64_t> labels;  // each in [0, classes)

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  int64_t image_elements() const { return int64_t{channels} * height * width; }
  // [channels, height, width] of one image; `index` in [0, size).
  std::span<const uint8_t> Image(int64_t index) const {
    return {pixels.data() + index * image_elements(), static_cast<size_t>(image_elements())};
  }
};

// The first `count` images. Error (kInvalidArgument) unless 1 <= count <= size.
ImageDataset FirstImages(const ImageDataset& dataset, int64_t count);
// All but the last `count` images, and those. Error (kInvalidArgument) unless 1 <= count < size.
std::pair<ImageDataset, ImageDataset> HoldBackLast(const ImageDataset& dataset, int64_t count);

// How bytes become numbers: (byte / 255 - mean) / deviation, by channel.
struct Normalization {
  std::vector<float> mean;
  std::vector<float> deviation;
};

// Mean and standard deviation of each channel. A channel without any contrast gets deviation 1.
// Error (kInvalidArgument) for an empty dataset.
Normalization MeasureNormalization(const ImageDataset& dataset);

// A training and a validation set that share shape and classes.
struct DatasetPair {
  ImageDataset train;
  ImageDataset validation;
};

}  // namespace skiff::models
