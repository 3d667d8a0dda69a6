// The table of tolerances of the op tests.
//
// A value may differ from its reference by tolerance * max(|expected|, rms(expected), kFloor). This
// is an element-wise relative error, except that elements that are small through cancellation are
// measured by the size of the whole array. kFloor is for arrays that are zero up to rounding.
#pragma once

#include "framework/base/dtype.h"

namespace skiff::harness {

struct Tolerances {
  static constexpr double kFloor = 1e-2;
  // Against the float64 reference.
  static constexpr double kFloat32 = 1e-5;
  static constexpr double kFloat64 = 1e-12;
  // Half a unit in the last place of a number in half, and the sums in float32 before it is
  // rounded: of kernels kNativeHalfKernel.
  static constexpr double kNativeBFloat16 = 0x1.02p-8;
  static constexpr double kNativeFloat16 = 0x1.1p-11;
  // Float32 gradients against float64 ones. Wider than kFloat32, since a gradient is a chain of
  // ops.
  static constexpr double kFloat32Gradient = 3e-5;
  // Float64 gradients against central differences.
  static constexpr double kCentralDifference = 2e-6;
  // The step of the differences, times max(|x|, 1): about the cube root of the machine epsilon,
  // where truncation and rounding errors are of equal size.
  static constexpr double kDifferenceStep = 6e-6;

  // Integers and bools must be equal.
  static constexpr double Of(DType dtype) {
    if (dtype == DType::kFloat32) return kFloat32;
    return dtype == DType::kFloat64 ? kFloat64 : 0.0;
  }
};

}  // namespace skiff::harness
