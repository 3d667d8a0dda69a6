// The bytes of bools that come from outside. C++ knows only 0 and 1: with any other byte, a loop
// that counts or picks by bools does anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "framework/tensor/tensor.h"

namespace skiff {

// Returns the index of the first element of a tensor of bools on the CPU whose byte is neither 0
// nor 1. Returns nothing if there is none, and for other tensors.
std::optional<int64_t> FindBadBool(const Tensor& tensor);

// Throws an Error (kInvalidArgument), starting with `what`, for a tensor that has such an element.
void CheckBools(const Tensor& tensor, std::string_view what);

}  // namespace skiff
