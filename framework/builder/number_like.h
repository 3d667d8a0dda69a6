// Numbers as operands of ops.
#pragma once

#include <source_location>

#include "framework/builder/variable.h"

namespace skiff {

// Returns a constant of rank 0 in the dtype of `like`, which fits any shape where ops broadcast.
// Throws an Error (kInvalidArgument) if `like` is undefined or if its dtype doesn't hold the
// number.
Variable NumberLike(const Variable& like, double number, const std::source_location& site);

}  // namespace skiff
