// LeNet-5 with rectified units and max pooling.
//
// Source: Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, "Gradient-Based Learning Applied to Document
// Recognition", Proc. IEEE 86 (1998), figure 2: two convolutions of 5x5, each followed by a pooling
// by 2, and fully connected layers of 120 and 84 units. Unlike in the paper, every map of the
// second convolution reads all maps of the first, and the output is a softmax.
#pragma once

#include <cstdint>

#include "framework/builder/variable.h"

namespace skiff::models {

// Appends the network: from images [-1, channels, height, width] of at least 12 x 12 pixels to
// logits [-1, classes]. Throws Error (kInvalidArgument) for smaller images.
Variable LeNet(const Variable& image, int64_t classes);

}  // namespace skiff::models
