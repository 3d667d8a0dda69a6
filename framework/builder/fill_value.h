// The constant of an op such as fill_constant.
#pragma once

#include "framework/base/dtype.h"
#include "framework/ir/program.h"

namespace skiff {

// Sets `value`, a float, and where that loses what `dtype` could hold also `str_value`, which the
// op prefers.
void SetFillValue(Op* op, DType dtype, double value);

}  // namespace skiff
