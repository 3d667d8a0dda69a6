// Metrics inside the program. Errors of all layers: layers.h.
#pragma once

#include <cstdint>
#include <source_location>

#include "framework/builder/layers.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

// Returns the share of samples whose label, int64 or int32 of shape [N, 1] or [N], is among the k
// best of `scores` [N, classes]: a float32 scalar (rank 0).
Variable Accuracy(const Variable& scores, const Variable& label, int64_t k = 1,
                  Site site = Site::current());

}  // namespace skiff::layers
