// Rows that a mask chooses, for split_lod_tensor and merge_lod_tensor.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "framework/base/error.h"
#include "framework/op/op_context.h"
#include "framework/tensor/tensor.h"

namespace skiff {

// For shape rules: throws an Error unless X is dense, has rows, and Mask is a bool for each of
// them.
inline void CheckRowMask(const OpContext& context) {
  const TensorMeta& x = context.Input("X");
  const TensorMeta& mask = context.Input("Mask");
  SKIFF_ENFORCE(x.lod_level == 0, kUnimplemented, context.op().type, ": X has ", x.lod_level,
                " LoD levels, expected a dense tensor");
  const bool is_column = mask.shape.rank() == 1 || (mask.shape.rank() == 2 && mask.shape[1] == 1);
  SKIFF_ENFORCE(x.shape.rank() >= 1 && mask.dtype == DType::kBool && is_column, kInvalidArgument,
                context.op().type, ": X is ", x.shape, " and Mask ", mask.dtype, " ", mask.shape,
                ", expected rows and a bool [rows, 1]");
  MergeDims(x.shape[0], mask.shape[0], context.op().type + ": the rows of X and of Mask");
}

// Returns how many rows of the mask are `value`.
inline int64_t CountRows(const Tensor& mask, bool value) {
  return std::ranges::count(mask.values<bool>(), value);
}

inline int64_t RowBytes(const Tensor& tensor) {
  const int64_t rows = tensor.shape()[0];
  return rows == 0 ? 0 : tensor.byte_count() / rows;
}

}  // namespace skiff
