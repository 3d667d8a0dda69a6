// The passes over runs of contiguous numbers that layer, group and instance normalization consist
// of.
//
// Each pass runs on the calling thread and adds up in an order that depends only on the count. It
// carries sums of float32 in float64 from one block of some thousand elements to the next. T is
// float (vectorised) or double.
#pragma once

#include <cstdint>

namespace skiff {

// The mean of a run and the sum of squared distances from it. Both are 0 for no elements.
struct RunMoments {
  double mean = 0;
  double squares = 0;
};
// The caller adds `epsilon` to the variance: squares that vanish beside it may be lost.
template <typename T>
RunMoments MomentsOf(const T* x, int64_t count, double epsilon);

// In what follows, C is the type of the coefficients and of the arithmetic: T, or double for runs
// whose variance, with epsilon, is extreme (extreme_square.h).

// The sums of g and of g · (x - mean), where g is dy · scale with a factor for each element, or dy
// if `scale` is nullptr.
struct RunGradientSums {
  double sum = 0;
  double product = 0;
};
template <typename T, typename C>
RunGradientSums GradientSumsOf(const T* x, const T* dy, const T* scale, int64_t count, C mean);

// Sets y = (x - mean) · slope + shift. y may be x.
template <typename T, typename C>
void NormalizeRun(const T* x, int64_t count, C mean, C slope, C shift, T* y);
// Sets y = (x - mean) · slope · scale + bias, with a scale and a bias for each element. Either may
// be nullptr. y may be x.
template <typename T, typename C>
void NormalizeRow(const T* x, int64_t count, C mean, C slope, const T* scale, const T* bias, T* y);

// The coefficients of GradientRow.
template <typename C>
struct RunGradient {
  C mean;
  C slope;
  C factor;
  C offset;
};
// Sets dx = dy · scale · slope - (x - mean) · factor - offset, where `scale` has a factor for each
// element or is nullptr. dx may be dy or x.
template <typename T, typename C>
void GradientRow(const T* x, const T* dy, const T* scale, int64_t count,
                 const RunGradient<C>& gradient, T* dx);

// Adds dy · (x - mean) · slope to scale_sums[i] and dy to bias_sums[i], unless that is nullptr.
template <typename T, typename C>
void AddParameterGradients(const T* x, const T* dy, int64_t count, C mean, C slope, T* scale_sums,
                           T* bias_sums);

}  // namespace skiff
