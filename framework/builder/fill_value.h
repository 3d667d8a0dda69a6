// The numbers that ops fill variables with.
#pragma once

#include "framework/base/dtype.h"
#include "framework/ir/program.h"

namespace skiff {

// Sets the attribute `value`, a float. If a float holds fewer digits than `dtype`, also sets
// `str_value`, which the op prefers.
void SetFillValue(Op* op, DType dtype, double value);

// Returns whether the dtype has floats or the number is whole.
bool MayHold(DType dtype, double number);

}  // namespace skiff
