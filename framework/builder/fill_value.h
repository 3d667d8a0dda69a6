// Constants of programs.
#pragma once

#include <source_location>

#include "framework/base/dtype.h"
#include "framework/builder/variable.h"
#include "framework/ir/program.h"

namespace skiff {

// Sets `value`, a float, and where that loses what `dtype` could hold also `str_value`, which the
// op prefers.
void SetFillValue(Op* op, DType dtype, double value);

// Returns whether the dtype is one of floats or the number whole.
bool MayHold(DType dtype, double number);

// Returns a constant of rank 0 in the dtype of `like`, which fits any shape where ops broadcast.
// Throws an Error (kInvalidArgument) if `like` is undefined or if its dtype doesn't hold the
// number.
Variable NumberLike(const Variable& like, double number, const std::source_location& site);

}  // namespace skiff
