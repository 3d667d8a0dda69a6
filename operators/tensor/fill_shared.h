// Filling a tensor with one value: what fill_constant and its relatives share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/op/registry.h"

namespace skiff {

// A constant as the attributes `value` and `str_value` give it, or a tensor of one element. Whole
// numbers stay exact.
struct FillValue {
  bool is_integer = false;
  double real = 0;
  int64_t integer = 0;
};

// `str_value` if it isn't empty, else `value`. Error for text that is no number.
FillValue FillValueFromAttributes(const OpContext& context);

// The value of a tensor of one element of any number type. Error for other counts and dtypes.
FillValue FillValueFromTensor(const Tensor& tensor, std::string_view what);

// Whether `value` can be held: NaN, infinities and magnitudes beyond an integer dtype can't. Error
// naming `what` otherwise.
void CheckFillValue(const FillValue& value, DType dtype, std::string_view what);

// Sets every element of `out`, whose dtype has passed CheckFillValue. Threaded.
void FillTensor(const FillValue& value, Tensor* out);

// Error unless FillTensor knows the dtype.
void CheckFillDType(DType dtype, std::string_view what);

// Registers `prepare` for every dtype that FillTensor knows.
void AddFillKernels(OpRegistry& registry, std::string_view type, const KernelFactory& prepare);

}  // namespace skiff
