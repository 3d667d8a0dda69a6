// A multilayer perceptron: fully connected layers with rectified units.
#pragma once

#include <cstdint>

#include "framework/builder/variable.h"

namespace skiff::models {

struct MlpOptions {
  int32_t hidden_layers = 2;
  int64_t hidden_units = 256;  // of each layer
  int64_t classes = 10;
  float dropout = 0.0f;  // the share of each hidden layer's units that training leaves out
};

// Appends the network: from inputs [-1, …], each flattened to a vector, to logits [-1, classes].
// Throws Error (kInvalidArgument) for sizes that CheckSizes refuses, and what the layers throw.
Variable Mlp(const Variable& input, const MlpOptions& options);

}  // namespace skiff::models
