// y = f(x), at most a limit from 0, and the gradient through it.
#pragma once

#include <cstdint>

#include "operators/sequence/kernels/recurrent_activation.h"

namespace skiff {

template <typename T>
struct ClippedActivation {
  RecurrentActivation f = RecurrentActivation::kIdentity;
  T limit = 0;  // 0: none
};

// The functions of an activation of `count` numbers.
template <typename T>
struct ClippedFunctions {
  // Returns those that are compiled for the processor's instruction set. T: float or double.
  static ClippedFunctions Used();

  // Sets x[i] = y(x[i]).
  void (*activate)(const ClippedActivation<T>& activation, T* x, int64_t count);
  // Multiplies gradient[i] by the derivative at the x that has y[i]; it is 0 at the limit.
  void (*multiply_by_derivative)(const ClippedActivation<T>& activation, const T* y, T* gradient,
                                 int64_t count);
};

}  // namespace skiff
