// Passes over runs of contiguous numbers that layer, group and instance normalization are made of.
//
// Each works on the calling thread and adds up in an order that depends on the count alone: float32
// is carried in float64 from one block of some thousand elements to the next. T is float
// (vectorised) or double.
#pragma once

#include <cstdint>

namespace skiff {

// The mean of a run and the sum of squared distances from it; 0 for no elements.
struct RunMoments {
  double mean = 0;
  double squares = 0;
};
template <typename T>
RunMoments MomentsOf(const T* x, int64_t count);

// The sums of dy and of dy · (x - mean), where dy is multiplied by `scale`, one factor an element,
// unless that is nullptr.
struct RunGradientSums {
  double sum = 0;
  double product = 0;
};
template <typename T>
RunGradientSums GradientSumsOf(const T* x, const T* dy, const T* scale, int64_t count, T mean);

// y = (x - mean) · slope + shift; y may be x.
template <typename T>
void NormalizeRun(const T* x, int64_t count, T mean, T slope, T shift, T* y);
// y = (x - mean) · slope · scale + bias with a scale and a bias for each element; either may be
// nullptr, y may be x.
template <typename T>
void NormalizeRow(const T* x, int64_t count, T mean, T slope, const T* scale, const T* bias, T* y);

// What a gradient is made of.
template <typename T>
struct RunGradient {
  T mean;
  T slope;
  T factor;
  T offset;
};
// dx = dy · scale · slope - (x - mean) · factor - offset, where `scale` has one factor an element
// or is nullptr; dx may be dy or x.
template <typename T>
void GradientRow(const T* x, const T* dy, const T* scale, int64_t count,
                 const RunGradient<T>& gradient, T* dx);

// scale_sums[i] += dy · (x - mean) · slope and bias_sums[i] += dy.
template <typename T>
void AddParameterGradients(const T* x, const T* dy, int64_t count, T mean, T slope, T* scale_sums,
                           T* bias_sums);

}  // namespace skiff
