// A data set that needs no files: digits as a seven-segment display shows them, each drawn with its
// own place, size, slant, rotation, stroke, brightness and noise.
//
// Several digits differ in one segment only, so a network has to look; nothing is mislabelled, so
// it can get (nearly) all of them right. Image i depends on the options alone, not on how many
// there are or how many threads draw them.
#pragma once

#include <cstdint>

#include "framework/training/data_random.h"
#include "models/common/dataset.h"

namespace skiff::models {

struct GeneratedImagesOptions {
  int64_t images = 2000;
  int32_t channels = 3;
  int32_t height = 32;
  int32_t width = 32;
  uint64_t seed = 1;
  // kTrainingSamples or kValidationSamples: other images.
  training::DataStream stream = training::DataStream::kTrainingSamples;
  float noise = 0.12f;  // deviation of the pixel noise, of a full range of 1
};

// Ten classes, label i % 10. Error (kInvalidArgument) for counts or extents below 1 or a negative
// noise.
ImageDataset GenerateImages(const GeneratedImagesOptions& options);

}  // namespace skiff::models
