// Random changes of training images, and the conversion from bytes to a network's inputs.
//
// The change of a sample depends only on (seed, epoch, sample): not on threads, batches or the
// order in which samples are read.
#pragma once

#include <cstdint>
#include <span>

#include "models/common/dataset.h"

namespace skiff::models {

struct AugmentationOptions {
  bool flip = false;    // mirror an image with a probability of one half
  int32_t padding = 0;  // pad the image by this many pixels and crop a window of its original size
};

// The change of one sample.
struct Augmentation {
  bool flip = false;
  int32_t shift_y = 0;  // of the window: pixel (y, x) comes from (y + shift_y, x + shift_x)
  int32_t shift_x = 0;
};

// Returns the random change of a sample, with shifts uniform in [-padding, padding]. Throws Error
// (kInvalidArgument) for a negative padding.
Augmentation DrawAugmentation(const AugmentationOptions& options, uint64_t seed, int64_t epoch,
                              int64_t sample);

// Writes the changed and normalised image [channels, height, width] to `out`. Pixels outside of the
// image are black before normalisation.
void WriteImage(const ImageDataset& dataset, int64_t index, const Normalization& normalization,
                const Augmentation& augmentation, std::span<float> out);

}  // namespace skiff::models
