// A dataset that needs no files: digits of a seven-segment display, each drawn with its own
// position, size, slant, rotation, stroke, brightness and noise.
//
// Several digits differ in one segment only, so the task isn't trivial; no image is mislabelled, so
// a network can get (nearly) all of them right. Image i depends only on the options, not on the
// number of images or of threads that draw them.
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
  // kTrainingSamples or kValidationSamples; the images differ.
  training::DataStream stream = training::DataStream::kTrainingSamples;
  float noise = 0.12f;  // the standard deviation of the pixel noise; black to white is 1
};

// Returns images of ten classes; image i has the label i % 10. Throws Error (kInvalidArgument) for
// counts or extents below 1 or negative noise.
ImageDataset GenerateImages(const GeneratedImagesOptions& options);

}  // namespace skiff::models
