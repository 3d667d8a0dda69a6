// The values of a gradient of selected rows, in the dtype that an update computes in.
#pragma once

#include "framework/op/kernel.h"
#include "operators/common/half_arrays.h"
#include "operators/optimizer/kernels/update_arguments.h"

namespace skiff {

// T is float or double.
template <typename T>
class RowValues {
 public:
  // The op has one parameter. Requests a workspace if its gradient has two-byte values.
  RowValues(PrepareContext& context, const UpdateArguments& arguments);
  // Returns the values of all slots, in their order. Two-byte values are converted to floats first,
  // on all threads.
  const T* Get(const KernelContext& run) const;

 private:
  int grad_;
  HalfArrays halves_;
  int workspace_ = -1;  // values as floats; -1: they have the dtype T
};

}  // namespace skiff
