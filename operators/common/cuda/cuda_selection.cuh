// The first elements of lines in an order: for the CUDA kernels of top_k, arg_max, multinomial and
// their like.
#pragma once

#include <cstdint>

#include "framework/op/kernel.h"
#include "operators/common/axis_extents.h"

namespace skiff {

// The first k elements of each line, in order, and their places. The results are [outer, k, inner].
template <typename T>
struct CudaSelection {
  const T* x;
  int64_t k;
  bool is_descending;
  bool nan_is_first;
  // What nobody wants is nullptr.
  T* values;
  int64_t* places;
  int32_t* narrow_places;
};

// Selects elements of each line along the axis, whose length is at least k. Reads each line k
// times. T is float, double, int32_t or int64_t. `what` names the work in an Error. The kernels
// are compiled once, in cuda_selection.cu.
template <typename T>
void SelectOnDevice(const KernelContext& run, const char* what, const AxisExtents& extents,
                    const CudaSelection<T>& selection);

extern template void SelectOnDevice(const KernelContext&, const char*, const AxisExtents&,
                                    const CudaSelection<float>&);
extern template void SelectOnDevice(const KernelContext&, const char*, const AxisExtents&,
                                    const CudaSelection<double>&);
extern template void SelectOnDevice(const KernelContext&, const char*, const AxisExtents&,
                                    const CudaSelection<int32_t>&);
extern template void SelectOnDevice(const KernelContext&, const char*, const AxisExtents&,
                                    const CudaSelection<int64_t>&);

}  // namespace skiff
