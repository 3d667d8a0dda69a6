// The loops of an optimizer's formula, as the kernels call them. update_loops-inl.h makes them for
// each instruction set.
#pragma once

#include <cstdint>

#include "operators/optimizer/kernels/update_range.h"

namespace skiff {

// Applies the formula to elements [begin, end) of `range`. `grad[0]` is the gradient of element
// `begin`; the loop itself applies `range.gradient` to it.
template <typename T>
using UpdateLoop = void (*)(const UpdateRange<T>& range, int64_t begin, int64_t end, const T* grad);

template <typename T>
struct UpdateLoops {
  UpdateLoop<T> update;
  // Only for a formula that needs the norm of its step: moves the states on and writes the step to
  // the range's param_out. It runs over all elements before `update`, with coefficients for norms
  // of 0; `update` then finds the new states in `states`.
  UpdateLoop<T> step = nullptr;
};

// The loops of an op for one instruction set.
struct UpdateLoopSet {
  UpdateLoops<float> of_float;
  UpdateLoops<double> of_double;
};

}  // namespace skiff
