// Loads the images that the text of a --data flag names.
#pragma once

#include <cstdint>
#include <string>

#include "models/common/augmentation.h"
#include "models/common/dataset.h"

namespace skiff::models {

struct DatasetChoice {
  // "generated", "mnist:DIR", "cifar10:DIR" or "cifar100:DIR".
  std::string data = "generated";
  int64_t limit_samples = 0;       // of training; 0: all, or `generated_samples`
  int64_t validation_samples = 0;  // 0: 500 generated ones, 5,000 of MNIST, CIFAR's test images
  // Of generated images.
  int64_t generated_samples = 2000;
  int32_t channels = 3;
  int32_t height = 32;
  int32_t width = 32;
  uint64_t seed = 1;
};

// Loads or generates the images. Throws Error (kInvalidArgument) for any other text and for
// negative numbers, and the Errors of the readers.
DatasetPair LoadDatasets(const DatasetChoice& choice);

// Returns the options for "none", "crop" (random crops of the image, padded by 4 pixels),
// "crop_flip" (crops and random flips) or "auto" (crop_flip for CIFAR, none otherwise). Throws
// Error (kInvalidArgument) for any other text.
AugmentationOptions AugmentationFromName(const std::string& name, const std::string& data);

}  // namespace skiff::models
