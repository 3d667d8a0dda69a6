// The activations of recurrent layers on a device.
#pragma once

#include <cmath>

#include "operators/sequence/kernels/recurrent_activation.h"

namespace skiff {

template <typename T>
__device__ T SigmoidOf(T x) {
  // exp(-|x|) can't overflow.
  const T e = std::exp(x < T{0} ? x : -x);
  return (x < T{0} ? e : T{1}) / (T{1} + e);
}

template <typename T>
__device__ T Activated(RecurrentActivation activation, T x) {
  switch (activation) {
    case RecurrentActivation::kSigmoid:
      return SigmoidOf(x);
    case RecurrentActivation::kTanh:
      return std::tanh(x);
    case RecurrentActivation::kRelu:
      return x < T{0} ? T{0} : x;  // NaN stays
    default:
      return x;
  }
}

// gradient * f'(x), given y = f(x).
template <typename T>
__device__ T ThroughActivation(RecurrentActivation activation, T y, T gradient) {
  switch (activation) {
    case RecurrentActivation::kSigmoid:
      return gradient * (y * (1 - y));
    case RecurrentActivation::kTanh:
      return gradient * (1 - y * y);
    case RecurrentActivation::kRelu:
      return y > T{0} ? gradient : T{0};
    default:
      return gradient;
  }
}

}  // namespace skiff
