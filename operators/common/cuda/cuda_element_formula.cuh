// CUDA kernels of the formulas of element_formula.h. A thread takes vectors of 16 bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_grid.h"
#include "operators/common/cuda/cuda_vector_loop.cuh"
#include "operators/common/element_formula.h"

namespace skiff {

// Returns `length` elements of an input from position i on. is_whole: as in LoadVector.
template <int kSize, typename T>
__device__ CudaVector<T, kSize> LoadInput(const typename ElementArrays<T>::Input& input, int64_t i,
                                          int length, bool is_whole) {
  if (input.data != nullptr && input.step != 0) {
    return LoadVector<kSize>(input.data + i, length, is_whole);
  }
  CudaVector<T, kSize> vector;
  const T number = input.data == nullptr ? T{1} : *input.data;
#pragma unroll
  for (int j = 0; j < kSize; ++j) vector.values[j] = number;
  return vector;
}

// Applies a formula at positions [0, count). The local arrays of a thread stay in registers: all
// loops over them are unrolled.
template <class Formula, typename T>
__global__ void __launch_bounds__(kCudaThreads)
    ApplyFormulaToVectors(Formula formula, ElementArrays<T> arrays, int64_t count,
                          bool is_aligned) {
  constexpr int kSize = kVectorSize<T>;
  constexpr size_t kInputCount = Formula::kInputs.size();
  constexpr size_t kOutputCount = Formula::kOutputs.size();
  ForEachVector<kSize>(count, is_aligned, [&](int64_t i, int length, bool is_whole) {
    CudaVector<T, kSize> inputs[kInputCount];
    CudaVector<T, kSize> outputs[kOutputCount];
    ElementArrays<T> elements;
#pragma unroll
    for (size_t k = 0; k < kInputCount; ++k) {
      inputs[k] = LoadInput<kSize, T>(arrays.inputs[k], i, length, is_whole);
      elements.inputs[k].data = inputs[k].values;
    }
#pragma unroll
    for (size_t k = 0; k < kOutputCount; ++k) elements.outputs[k] = outputs[k].values;
#pragma unroll
    for (int j = 0; j < kSize; ++j) ApplyFormula(formula, elements, j);
#pragma unroll
    for (size_t k = 0; k < kOutputCount; ++k) {
      if (arrays.outputs[k] != nullptr) {
        StoreVector(outputs[k], length, is_whole, arrays.outputs[k] + i);
      }
    }
  });
}

// Issues the kernel of a formula. `what`: the name of the kernel in an Error.
template <class Formula, typename T>
void LaunchFormula(const KernelContext& run, const char* what, const Formula& formula,
                   const ElementArrays<T>& arrays, int64_t count) {
  if (count == 0) return;
  bool is_aligned = true;
  for (const auto& input : arrays.inputs) {
    is_aligned = is_aligned && (input.step == 0 || IsAlignedTo(input.data, 16));
  }
  for (const T* output : arrays.outputs) is_aligned = is_aligned && IsAlignedTo(output, 16);
  ApplyFormulaToVectors<Formula, T>
      <<<GridOfVectors(run, count, sizeof(T)).blocks, kCudaThreads, 0, StreamOf(run)>>>(
          formula, arrays, count, is_aligned);
  CheckLaunch(what);
}

// Returns the kernel of a formula on a device. `what` is as in LaunchFormula.
template <class Formula, typename T>
std::unique_ptr<Kernel> PrepareCudaFormula(PrepareContext& context, const char* what) {
  const Formula formula(context);
  const FormulaArguments<Formula, T> arguments(context);
  return MakeRowsKernel([=](const KernelContext& run) {
    LaunchFormula<Formula, T>(run, what, formula, arguments(run), arguments.count(run));
  });
}

// Adds the CUDA kernels of a formula for float32 and float64.
template <class Formula>
void AddCudaFormulaKernels(OpRegistry& registry, const char* type) {
  AddCudaKernels<float, double>(registry, type, [=]<typename T>(PrepareContext& context) {
    return PrepareCudaFormula<Formula, T>(context, type);
  });
}

}  // namespace skiff
