// What shape rules and kernels ask of dims.
#pragma once

#include <cstdint>
#include <string_view>

#include "framework/tensor/api/shape.h"

namespace skiff {

// Returns `axis` as an index in [0, rank). Throws Error, starting with `what`, if `axis` is outside
// [-rank, rank).
int NormalizeAxis(int64_t axis, int rank, std::string_view what);

}  // namespace skiff
