// Which squares float32 is too narrow for.
#pragma once

namespace skiff {

// Returns whether a square, or a product of two numbers, is extreme: so small or so large (or NaN)
// that sums of float32 may lose it, or that float32 can't hold a gradient's coefficients, such as
// the third power of its inverse root. T may be float: a square that float loses is extreme.
//
// Kernels sum ordinary squares in float32. Extreme squares are rare, and kernels compute them again
// in float64, which holds the square of every float32 number. For float64 tensors there is nothing
// wider: their squares are lost above 1e154 and below 1e-154.
template <typename T>
constexpr bool IsExtremeSquare(T square) {
  return !(square >= T{0x1p-64f} && square <= T{0x1p64f});
}

}  // namespace skiff
