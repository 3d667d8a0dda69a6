// Random tensors on CUDA: the numbers that the CPU draws (random_tensor.h).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_grid.h"
#include "operators/common/cuda/cuda_philox.cuh"
#include "operators/common/cuda/cuda_vector_loop.cuh"
#include "operators/common/cuda/cuda_vectors.cuh"
#include "operators/random/kernels/random_tensor.h"

namespace skiff {
namespace cuda_random {

// Element: Set(words, elements) makes kElements elements of kWords words, which are 1, 2 or 4.
template <class Element, typename T>
__global__ void __launch_bounds__(kCudaThreads)
    Draw(DevicePhilox philox, Element element, T* out, int64_t count, bool is_aligned) {
  // The elements of a block of four words.
  constexpr int kElements = 4 / Element::kWords * Element::kElements;
  ForEachVector<kElements>(count, is_aligned, [&](int64_t i, int length, bool is_whole) {
    const DevicePhilox::Block block = philox.At(static_cast<uint64_t>(i / kElements));
    CudaVector<T, kElements> drawn;
#pragma unroll
    for (int k = 0; k < 4 / Element::kWords; ++k) {
      element.Set(block.words + k * Element::kWords, drawn.values + k * Element::kElements);
    }
    StoreVector(drawn, length, is_whole, out + i);
  });
}

}  // namespace cuda_random

// Fills `out` with the elements of the stream of `key`.
template <typename T, class Element>
void DrawOnDevice(const KernelContext& run, const RandomKey& key, const Element& element,
                  Tensor* out) {
  constexpr int64_t kElements = 4 / Element::kWords * Element::kElements;
  const int64_t count = out->element_count();
  if (count == 0) return;
  const CudaGrid grid = GridOf(run, (count + kElements - 1) / kElements);
  cuda_random::Draw<Element, T>
      <<<grid.blocks, kCudaThreads, 0, static_cast<cudaStream_t>(grid.stream)>>>(
          DevicePhilox(key), element, out->data<T>(), count, IsAlignedTo(out->raw_data(), 16));
  const char* failure = LaunchFailure();
  SKIFF_ENFORCE(failure == nullptr, kIo, "random numbers: launch failed: ", failure);
}

template <typename T>
void AddCudaRandomKernel(OpRegistry& registry, const char* type, const KernelFactory& prepare) {
  registry.AddCudaKernel(type, kDTypeOf<T>, prepare);
}

}  // namespace skiff
