// Very deep networks of small convolutions.
//
// Source: K. Simonyan, A. Zisserman, "Very Deep Convolutional Networks for Large-Scale Image
// Recognition", ICLR 2015, table 1, configurations A, B, D and E: five stages of 3x3 convolutions
// with rectified units, each followed by a max pooling by 2, then fully connected layers.
//
// Differences: every convolution is followed by batch normalisation, with which the networks train
// from random initial values; and small images get a single fully connected layer directly after
// the last stage, as in S. Liu, W. Deng, "Very Deep Convolutional Neural Network Based Image
// Classification Using Small Training Sample Size", ACPR 2015.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/builder/variable.h"

namespace skiff::models {

enum class VggHead {
  kBySize,  // kLarge for images of at least 64 x 64 pixels, else kSmall
  kSmall,   // one fully connected layer
  kLarge,   // two layers of 4096 units, each with dropout of one half, and the last one
};

struct VggOptions {
  int32_t depth = 11;  // layers with weights, counted as the paper does
  int64_t classes = 10;
  VggHead head = VggHead::kBySize;
};

// Returns the available depths in ascending order.
const std::vector<int32_t>& VggDepths();

// Appends the network: from images [-1, channels, height, width] of at least 32 x 32 pixels to
// logits [-1, classes]. Throws Error (kInvalidArgument) for smaller images and for a depth that
// isn't one of VggDepths().
Variable Vgg(const Variable& image, const VggOptions& options);

}  // namespace skiff::models
