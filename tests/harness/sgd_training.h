// Small trainings, to compare two ways to write a network.
#pragma once

#include <functional>
#include <vector>

#include "framework/builder/variable.h"
#include "framework/executor/executor.h"

namespace skiff::harness {

// Returns numbers in [-1, 1) that look random, as float32 or float64.
Tensor SmallNumbers(const Shape& shape, int seed, DType dtype = DType::kFloat32);

// Builds a network with parameters, whose loss `build` returns, and trains it by SGD for a step
// with each batch, dead memory filled with NaN. Returns the losses, and then all parameters, in the
// order in which the network makes them.
std::vector<double> TrainBySgd(const std::function<Variable()>& build,
                               const std::vector<FeedList>& batches, CompileOptions options = {},
                               double learning_rate = 0.1);

}  // namespace skiff::harness
