// Random changes of training images, and the way from bytes to a network's numbers.
//
// What happens to a sample depends on (seed, epoch, sample) alone: not on threads, batches or the
// order in which samples are read.
#pragma once

#include <cstdint>
#include <span>

#include "models/common/dataset.h"

namespace skiff::models {

struct AugmentationOptions {
  bool flip = false;    // left and right, for every other image
  int32_t padding = 0;  // crops a window of the image's size out of it with so much more around
};

// The change of one sample.
struct Augmentation {
  bool flip = false;
  int32_t shift_y = 0;  // the window's place: pixel (y, x) comes from (y + shift_y, x + shift_x)
  int32_t shift_x = 0;
};

// Shifts are uniform in [-padding, padding]. Error (kInvalidArgument) for a negative padding.
Augmentation DrawAugmentation(const AugmentationOptions& options, uint64_t seed, int64_t epoch,
                              int64_t sample);

// Writes the changed and normalised image [channels, height, width] to `out`. What lies outside of
// the image is black before normalisation.
void WriteImage(const ImageDataset& dataset, int64_t index, const Normalization& normalization,
                const Augmentation& augmentation, std::span<float> out);

}  // namespace skiff::models
