// Ops that normalize rows by parameters that exist.
#pragma once

#include <cstdint>

#include "framework/builder/variable.h"

namespace skiff {

// Rows are the dims of x from `axis` on. Scale and shift have the dims of a row, in any shape; they
// may be undefined. An RMS norm has no shift. The axis is in [1, rank of x).
struct NormalizationOp {
  Variable x;
  Variable scale;
  Variable shift;
  int64_t axis = 0;
  float epsilon = 0;
};

// Append the op, and return its result.
Variable LayerNormOf(const NormalizationOp& op);
Variable RmsNormOf(const NormalizationOp& op);

}  // namespace skiff
