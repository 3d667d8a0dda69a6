// Sums in float64. Where float32 holds a sum with all digits, the bits are those of the float32
// sum; float64 also holds the other sums.
#pragma once

#include <limits>

#include "framework/base/error.h"
#include "framework/op/op_context.h"
#include "framework/op/op_def.h"
#include "framework/tensor/tensor.h"

namespace skiff {

// Returns x rounded to float32, but x itself if that would be infinite or below the least normal
// number.
constexpr double NearestFloat32(double x) {
  const auto rounded = static_cast<double>(static_cast<float>(x));
  const double size = rounded < 0 ? -rounded : rounded;
  using Limits = std::numeric_limits<float>;
  const bool is_held =
      size >= static_cast<double>(Limits::min()) && size <= static_cast<double>(Limits::max());
  return is_held ? rounded : x;
}

// Returns the attribute `wide_float32`. Other frameworks ignore it: there, the sum is float32.
inline AttrDef WideFloat32Attr() {
  return {.name = "wide_float32",
          .type = AttrType::kBool,
          .default_value = false,
          .doc =
              "Out is float64: the float32 sum, bit for bit, unless that is infinite or below the "
              "least normal number; then the sum in float64."};
}

inline bool IsWideFloat32(const OpContext& context) { return context.Attr<bool>("wide_float32"); }

// Returns the dtype of a sum of numbers of a dtype. Throws Error if a wide sum of float64 is asked
// for.
inline DType SumDType(const OpContext& context, DType dtype) {
  if (!IsWideFloat32(context)) return dtype;
  SKIFF_ENFORCE(dtype == DType::kFloat32, kInvalidArgument, context.op().type,
                ": wide_float32 = true and the sum is ", dtype, ", expected float32");
  return DType::kFloat64;
}

// Rounds the sum to the only element of `out`: to float32, also if that is wide, or to float64.
inline void StoreSum(double sum, Tensor* out, bool is_wide) {
  if (out->dtype() == DType::kFloat32) {
    *out->data<float>() = static_cast<float>(sum);
  } else {
    *out->data<double>() = is_wide ? NearestFloat32(sum) : sum;
  }
}

}  // namespace skiff
