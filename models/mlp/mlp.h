// A multilayer perceptron: fully connected layers with rectified units.
#pragma once

#include <cstdint>

#include "framework/builder/variable.h"

namespace skiff::models {

struct MlpOptions {
  int32_t hidden_layers = 2;
  int64_t hidden_units = 256;  // of each layer
  int64_t classes = 10;
  float dropout = 0.0f;  // share of each hidden layer's units left out in training
};

// From inputs [-1, …], each taken as one vector, to logits [-1, classes]. Error (kInvalidArgument)
// for a negative number of layers or no units, and as the layers.
Variable Mlp(const Variable& input, const MlpOptions& options);

}  // namespace skiff::models
