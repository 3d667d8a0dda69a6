// CUDA kernels for selected rows that run those for dense tensors on the values. Includes little.
#pragma once

#include <string_view>

namespace skiff {

class OpRegistry;

// AddValuesKernel (selected_rows.h) on a device: for an op X -> Out, which is linear in X, it adds
// kernels for selected rows that run the CUDA kernels of floats, which have been added, on the
// values, and copy the row numbers.
void AddCudaValuesKernels(OpRegistry& registry, std::string_view type);

}  // namespace skiff
