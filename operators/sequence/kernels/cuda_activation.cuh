// The activations of recurrent layers on a device.
#pragma once

#include <cmath>

#include "operators/sequence/kernels/clipped_activation.h"
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

// Returns x, at most `limit` from 0; a limit of 0 is none. NaN stays.
template <typename T>
__device__ T Clipped(T limit, T x) {
  if (!(limit > 0)) return x;
  if (x < -limit) return -limit;
  return limit < x ? limit : x;
}

// Returns whether the x of which this is Clipped(limit, x) has no influence on it.
template <typename T>
__device__ bool IsAtLimit(T limit, T clipped) {
  return limit > 0 && (clipped <= -limit || clipped >= limit);
}

template <typename T>
__device__ T Activated(const ClippedActivation<T>& activation, T x) {
  return Clipped(activation.limit, Activated(activation.f, x));
}
template <typename T>
__device__ T ThroughActivation(const ClippedActivation<T>& activation, T y, T gradient) {
  return ThroughActivation(activation.f, y, IsAtLimit(activation.limit, y) ? T{0} : gradient);
}

}  // namespace skiff
