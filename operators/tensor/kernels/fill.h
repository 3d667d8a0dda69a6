// Filling a tensor with one value, for fill_constant and similar ops.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/op/registry.h"

namespace skiff {

// A constant that the attributes `value` and `str_value`, or a tensor of one element, give.
// Integers stay exact.
struct FillValue {
  bool is_integer = false;
  double real = 0;
  int64_t integer = 0;
};

// Returns `str_value` if it isn't empty, else `value`. Throws Error for text that isn't a number.
FillValue FillValueFromAttributes(const OpContext& context);

// Returns the value of a tensor with one element. Throws Error for another number of them.
FillValue FillValueFromTensor(const Tensor& tensor, std::string_view what);

// Throws Error that names `what` unless `dtype` can hold `value`: integers can't hold NaN,
// infinities and numbers out of their range.
void CheckFillValue(const FillValue& value, DType dtype, std::string_view what);

// Sets every element of `out`, whose dtype has passed CheckFillValue. Half gets the nearest number
// to the float32 number. Threaded.
void FillTensor(const FillValue& value, Tensor* out);

// Returns the bits of such an element, in the lowest bytes.
uint64_t FillBits(const FillValue& value, DType dtype);

}  // namespace skiff
