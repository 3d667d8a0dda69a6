// Elements of arrays, for ops that write and read them.
#pragma once

#include "framework/base/error.h"
#include "framework/op/op_context.h"
#include "framework/tensor/tensor_array.h"
#include "operators/common/input_checks.h"

namespace skiff {

// For shape rules: throws an Error (kInvalidArgument) unless input I is one int64.
inline void CheckArrayIndex(const OpContext& context) {
  CheckOneElement(context, "I");
  const DType dtype = context.Input("I").dtype;
  SKIFF_ENFORCE(dtype == DType::kInt64, kInvalidArgument, context.op().type, ": I is ", dtype,
                ", expected int64");
}

// For shape rules: returns the known meta of the elements of an input. Throws an Error
// (kInvalidArgument) in a plan if nothing has written any.
inline const TensorMeta& ElementMeta(const OpContext& context, std::string_view slot) {
  const TensorMeta& array = context.Input(slot);
  SKIFF_ENFORCE(array.lod_level >= 0, kInvalidArgument, context.op().type, ": no op before writes ",
                "to the array ", slot);
  return array;
}

// Gives an output dim 0 and the LoD of `like`.
inline void SetRowsLike(const Tensor& like, Tensor* output) {
  if (like.shape().rank() > 0) output->SetRows(like.shape()[0]);
  output->ShareLoD(like.shared_lod());
}

}  // namespace skiff
