// What select_input and select_output have in common.
#pragma once

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "framework/tensor/dims_agree.h"
#include "operators/common/input_checks.h"

namespace skiff {

inline bool Agree(const Shape& a, const Shape& b) { return DimsAgree(a.dims(), b.dims()); }

inline void CheckMask(const OpContext& context) {
  CheckOneElement(context, "Mask");
  const DType dtype = context.Input("Mask").dtype;
  SKIFF_ENFORCE(dtype == DType::kInt32, kInvalidArgument, context.op().type, ": Mask is ", dtype,
                ", expected int32");
}

// Returns the definition of the mask.
inline SlotDef MaskSlot(StaticText doc) {
  return {.name = "Mask", .doc = doc, .checks_data = true, .on_host = true};
}

// Returns the mask's value. Throws an Error (kOutOfRange) unless it is in [0, count).
inline int64_t ChosenIndex(const char* op, const Tensor& mask, int64_t count) {
  const int64_t chosen = *mask.data<int32_t>();
  SKIFF_ENFORCE(chosen >= 0 && chosen < count, kOutOfRange, op, ": Mask = ", chosen,
                " is outside [0, ", count - 1, "]");
  return chosen;
}

}  // namespace skiff
