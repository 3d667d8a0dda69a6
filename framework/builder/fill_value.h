// The numbers that ops fill variables with.
#pragma once

#include "framework/base/dtype.h"
#include "framework/ir/program.h"

namespace skiff {

// Sets `value`, a float, and where that loses what `dtype` could hold also `str_value`, which the
// op prefers.
void SetFillValue(Op* op, DType dtype, double value);

// Returns whether the dtype is one of floats or the number whole.
bool MayHold(DType dtype, double number);

}  // namespace skiff
