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

// Set x[i] = y(x[i]).
void Activate(const ClippedActivation<float>& activation, float* x, int64_t count);
void Activate(const ClippedActivation<double>& activation, double* x, int64_t count);
// Multiply gradient[i] by the derivative at the x that has y[i]; it is 0 at the limit.
void MultiplyByDerivative(const ClippedActivation<float>& activation, const float* y,
                          float* gradient, int64_t count);
void MultiplyByDerivative(const ClippedActivation<double>& activation, const double* y,
                          double* gradient, int64_t count);

}  // namespace skiff
