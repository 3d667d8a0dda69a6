// Residual networks.
//
// Source: K. He, X. Zhang, S. Ren, J. Sun, "Deep Residual Learning for Image Recognition", CVPR
// 2016. Depths 20, 32, 44, 56 and 110 are the networks for small images of section 4.2 (three
// stages of 16, 32 and 64 channels); 18, 34, 50 and 101 those of table 1 (four stages from 64
// channels on). A shortcut whose shape changes is a 1x1 convolution with batch normalisation
// (option B); in a bottleneck the 3x3 convolution has the stride.
//
// Convolutions have no bias and are initialised as in K. He et al., "Delving Deep into Rectifiers",
// ICCV 2015, equation 10. Batch normalisation has momentum 0.9 and epsilon 1e-5.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/builder/variable.h"

namespace skiff::models {

enum class ResNetStem {
  kBySize,  // kLarge for images of at least 64 x 64 pixels, else kSmall
  kSmall,   // a 3x3 convolution
  kLarge,   // a 7x7 convolution with stride 2, and a 3x3 max pooling with stride 2
};

struct ResNetOptions {
  int32_t depth = 20;
  int64_t classes = 10;
  // Depths 20, 32, 44, 56 and 110 always have the small one.
  ResNetStem stem = ResNetStem::kBySize;
};

// Starts the names of the parameters of the last layer, which classifies.
inline constexpr const char* kResNetHead = "fc_0";

// Returns the stem of a name: by_size, small or large. Throws Error (kInvalidArgument), which lists
// the names.
ResNetStem ResNetStemFromName(std::string_view name);

// Returns the available depths in ascending order.
const std::vector<int32_t>& ResNetDepths();

// Appends the network: from images [-1, channels, height, width] to logits [-1, classes]. Throws
// Error (kInvalidArgument) for a depth outside ResNetDepths(), and for images of another rank than
// 4.
Variable ResNet(const Variable& image, const ResNetOptions& options);
// Appends the network without its last layer: to vectors [-1, width, 1, 1].
Variable ResNetVectors(const Variable& image, const ResNetOptions& options);

}  // namespace skiff::models
