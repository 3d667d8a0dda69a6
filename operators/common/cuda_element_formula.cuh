// CUDA kernels of the formulas of element_formula.h. A thread takes vectors of 16 bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "operators/common/cuda_for_each.cuh"
#include "operators/common/cuda_grid.h"
#include "operators/common/cuda_vector_loop.cuh"
#include "operators/common/element_formula.h"

namespace skiff {

template <class Formula, typename T>
__global__ void __launch_bounds__(kCudaThreads)
    ApplyFormulaToVectors(Formula formula, FormulaData<Formula, T> data, int64_t count,
                          bool is_aligned) {
  constexpr int kSize = kVectorSize<T>;
  constexpr size_t kInputCount = Formula::kInputs.size();
  constexpr size_t kOutputCount = Formula::kOutputs.size();
  ForEachVector<kSize>(count, is_aligned, [&](int64_t i, int length, bool is_whole) {
    CudaVector<T, kSize> inputs[kInputCount];
    CudaVector<T, kSize> outputs[kOutputCount];
#pragma unroll
    for (size_t k = 0; k < kInputCount; ++k) {
      inputs[k] = LoadVector<kSize>(data.inputs[k] + i, length, is_whole);
    }
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      FormulaData<Formula, T> element;
#pragma unroll
      for (size_t k = 0; k < kInputCount; ++k) element.inputs[k] = &inputs[k].values[j];
#pragma unroll
      for (size_t k = 0; k < kOutputCount; ++k) element.outputs[k] = &outputs[k].values[j];
      ApplyFormula(formula, element, 0);
    }
#pragma unroll
    for (size_t k = 0; k < kOutputCount; ++k) {
      if (data.outputs[k] != nullptr) {
        StoreVector(outputs[k], length, is_whole, data.outputs[k] + i);
      }
    }
  });
}

// Returns the kernel of a formula on a device. `what` names it in an Error.
template <class Formula, typename T>
std::unique_ptr<Kernel> PrepareCudaFormula(PrepareContext& context, const char* what) {
  const Formula formula(context);
  const FormulaArguments<Formula, T> arguments(context);
  return MakeRowsKernel([=](const KernelContext& run) {
    const int64_t count = arguments.count(run);
    if (count == 0) return;
    const FormulaData<Formula, T> data = arguments(run);
    bool is_aligned = true;
    for (const T* input : data.inputs) is_aligned = is_aligned && IsAlignedTo(input, 16);
    for (const T* output : data.outputs) is_aligned = is_aligned && IsAlignedTo(output, 16);
    ApplyFormulaToVectors<Formula, T>
        <<<GridOfVectors(run, count, sizeof(T)).blocks, kCudaThreads, 0, StreamOf(run)>>>(
            formula, data, count, is_aligned);
    CheckLaunch(what);
  });
}

// Adds these kernels for float32 and float64.
template <class Formula>
void AddCudaFormulaKernels(OpRegistry& registry, const char* type) {
  AddCudaKernels<float, double>(registry, type, [=]<typename T>(PrepareContext& context) {
    return PrepareCudaFormula<Formula, T>(context, type);
  });
}

}  // namespace skiff
