// Kernels that treat each element of a tensor by itself, and loads and stores of a few neighbours.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string_view>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_chunks.cuh"
#include "operators/common/cuda/cuda_division.h"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_vectors.cuh"

namespace skiff {

// A few neighbouring elements.
template <typename T, int kCount>
struct CudaValues {
  T at[kCount];
};

// Load and store kCount elements, half as float. is_aligned: at a multiple of kCount elements of an
// array that begins at a multiple of 16 bytes.
template <int kCount, typename T>
__device__ CudaValues<WideType<T>, kCount> LoadValues(const T* from, bool is_aligned) {
  CudaValues<WideType<T>, kCount> values;
  const auto loaded = LoadWide<kCount>(from, kCount, is_aligned);
#pragma unroll
  for (int k = 0; k < kCount; ++k) values.at[k] = loaded.values[k];
  return values;
}

template <int kCount, typename T>
__device__ void StoreValues(const CudaValues<WideType<T>, kCount>& values, bool is_aligned, T* to) {
  CudaVector<WideType<T>, kCount> stored;
#pragma unroll
  for (int k = 0; k < kCount; ++k) stored.values[k] = values.at[k];
  StoreRounded(stored, kCount, is_aligned, to);
}

template <class Body>
__global__ void __launch_bounds__(kCudaThreads) CallForEach(int64_t count, Body body) {
  const int64_t stride = int64_t{gridDim.x} * kCudaThreads;
  for (int64_t i = int64_t{blockIdx.x} * kCudaThreads + threadIdx.x; i < count; i += stride) {
    body(i);
  }
}

// Calls body(i) on the device for all i < count. `what` names the work in an Error.
template <class Body>
void ForEachOnDevice(const KernelContext& run, const char* what, int64_t count, const Body& body) {
  if (count == 0) return;
  CallForEach<<<CudaBlocksOfThreads(count), kCudaThreads, 0, StreamOf(run)>>>(count, body);
  CheckLaunch(what);
}

template <typename T, class Body>
__global__ void __launch_bounds__(kCudaThreads)
    CallForEachPack(int64_t count, bool is_packed, Body body) {
  const int64_t first = int64_t{blockIdx.x} * kCudaThreads + threadIdx.x;
  const int64_t stride = int64_t{gridDim.x} * kCudaThreads;
  if (is_packed) {
    for (int64_t i = first * kPackSize<T>; i < count; i += stride * kPackSize<T>) {
      body.template Do<kPackSize<T>>(i);
    }
  } else {
    for (int64_t i = first; i < count; i += stride) body.template Do<1>(i);
  }
}

// Calls body.template Do<kCount>(i) on the device for elements [i, i + kCount), which are packs if
// is_packed says so, or single ones. Packs never cross a multiple of `period`, the length of what
// repeats, such as a row: is_packed requires that it is a multiple of the pack's size.
template <typename T, class Body>
void ForEachPackOnDevice(const KernelContext& run, const char* what, int64_t count, int64_t period,
                         const Body& body) {
  if (count == 0) return;
  const bool is_packed = period % kPackSize<T> == 0;
  const int64_t threads = is_packed ? count / kPackSize<T> : count;
  CallForEachPack<T>
      <<<CudaBlocksOfThreads(threads), kCudaThreads, 0, StreamOf(run)>>>(count, is_packed, body);
  CheckLaunch(what);
}

// Returns whether packs of all these arrays, of which some may be nullptr, begin at multiples of 16
// bytes.
template <class... Pointers>
bool ArePacksAligned(const Pointers*... arrays) {
  return (IsPackAligned(arrays) && ...);
}

// Adds one CUDA kernel for each of Ts. The factory is prepare.template operator()<T>(context). The
// factory is a lambda that captures by [=], if only for nvcc: without captures, nvcc warns that the
// lambda could also be a function.
template <typename... Ts, typename Prepare>
void AddCudaKernels(OpRegistry& registry, std::string_view type, Prepare prepare) {
  (registry.AddCudaKernel(
       type, kDTypeOf<Ts>,
       [prepare](PrepareContext& context) { return prepare.template operator()<Ts>(context); }),
   ...);
}

// The same for all dtypes of floats.
template <typename Prepare>
void AddCudaFloatKernels(OpRegistry& registry, std::string_view type, Prepare prepare) {
  AddCudaKernels<float, double, BFloat16, Float16>(registry, type, prepare);
}

}  // namespace skiff
