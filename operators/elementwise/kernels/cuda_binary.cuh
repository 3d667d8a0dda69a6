// CUDA kernels of binary ops, which broadcast, and of their gradients, which sum over repeated
// elements. The .cu file of an op has functors for numbers of any type, f(x, y) and, for the
// gradient of each operand, f(x, y, out, dout), as in elementwise_mul.cu.
//
// If neighbouring results come from neighbours, a thread takes vectors of 16 bytes.
#pragma once

#include "operators/common/cuda_fold_tiles.cuh"
#include "operators/common/cuda_vector_loop.cuh"
#include "operators/common/cuda_vectors.cuh"
#include "operators/elementwise/kernels/cuda_binary.h"

namespace skiff {

// The gradient functor of an operand whose gradient is Out@GRAD itself.
struct CudaPassGradient {
  static constexpr bool kReadsX = false;
  static constexpr bool kReadsY = false;

  template <typename T>
  __device__ T operator()(T, T, T, T dout) const {
    return dout;
  }
};

// An operand: where it begins, and how far to move for the next result.
template <typename T>
struct CudaOperand {
  const T* data;
  int step;
};

namespace cuda_binary {

template <int kSize, typename T>
__device__ CudaVector<T, kSize> LoadOperand(const CudaOperand<T>& operand, int64_t offset,
                                            int count, bool is_whole) {
  if (operand.step != 0) return LoadVector<kSize>(operand.data + offset, count, is_whole);
  CudaVector<T, kSize> vector;
  const T value = operand.data[offset];
#pragma unroll
  for (int j = 0; j < kSize; ++j) vector.values[j] = value;
  return vector;
}

template <class Functor, int kSize, typename T, typename Out>
__global__ void __launch_bounds__(kCudaThreads)
    Combine(Functor f, CudaOperand<T> x, CudaOperand<T> y, Out* out, CudaLoops<2> loops,
            bool is_aligned) {
  ForEachVector<kSize>(loops.count(), is_aligned, [&](int64_t i, int count, bool is_whole) {
    int64_t offsets[2];
    loops.SetOffsets(i, offsets);
    const CudaVector<T, kSize> xs = LoadOperand<kSize>(x, offsets[0], count, is_whole);
    const CudaVector<T, kSize> ys = LoadOperand<kSize>(y, offsets[1], count, is_whole);
    CudaVector<Out, kSize> results;
#pragma unroll
    for (int j = 0; j < kSize; ++j) results.values[j] = f(xs.values[j], ys.values[j]);
    StoreVector(results, count, is_whole, out + i);
  });
}

// What gradients read and write.
template <typename T>
struct Gradients {
  CudaOperand<T> x;
  CudaOperand<T> y;
  const T* out;
  const T* dout;
  T* dx;  // nullptr: not wanted here
  T* dy;
};

// The gradients of operands without repeated elements, both in one pass.
template <class XGradient, class YGradient, int kSize, typename T>
__global__ void __launch_bounds__(kCudaThreads)
    CombineGradients(Gradients<T> of, CudaLoops<2> loops, bool is_aligned) {
  constexpr bool kReadsX = XGradient::kReadsX || YGradient::kReadsX;
  constexpr bool kReadsY = XGradient::kReadsY || YGradient::kReadsY;
  ForEachVector<kSize>(loops.count(), is_aligned, [&](int64_t i, int count, bool is_whole) {
    int64_t offsets[2];
    loops.SetOffsets(i, offsets);
    const CudaVector<T, kSize> douts = LoadVector<kSize>(of.dout + i, count, is_whole);
    CudaVector<T, kSize> xs = douts;
    CudaVector<T, kSize> ys = douts;
    CudaVector<T, kSize> outs = douts;
    if constexpr (kReadsX) xs = LoadOperand<kSize>(of.x, offsets[0], count, is_whole);
    if constexpr (kReadsY) ys = LoadOperand<kSize>(of.y, offsets[1], count, is_whole);
    if (of.out != nullptr) outs = LoadVector<kSize>(of.out + i, count, is_whole);
    CudaVector<T, kSize> dxs;
    CudaVector<T, kSize> dys;
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      dxs.values[j] = XGradient()(xs.values[j], ys.values[j], outs.values[j], douts.values[j]);
      dys.values[j] = YGradient()(xs.values[j], ys.values[j], outs.values[j], douts.values[j]);
    }
    if (of.dx != nullptr) StoreVector(dxs, count, is_whole, of.dx + i);
    if (of.dy != nullptr) StoreVector(dys, count, is_whole, of.dy + i);
  });
}

// Sums the gradients at all results to which an element of an operand was repeated.
template <class Gradient, typename T>
struct GradientSum {
  using Carry = double;
  static __device__ Carry Identity() { return 0; }
  static __device__ Carry Join(Carry a, Carry b) { return a + b; }
  __device__ void Add(int64_t i, int64_t, int64_t, Carry* carry) const {
    int64_t offsets[2] = {i, i};
    if constexpr (Gradient::kReadsX || Gradient::kReadsY) {
      if (needs_offsets) loops.SetOffsets(i, offsets);
    }
    const T dout = of.dout[i];
    T x = dout;
    T y = dout;
    if constexpr (Gradient::kReadsX) x = of.x.data[offsets[0]];
    if constexpr (Gradient::kReadsY) y = of.y.data[offsets[1]];
    *carry += static_cast<double>(Gradient()(x, y, of.out == nullptr ? dout : of.out[i], dout));
  }
  __device__ void Finish(int64_t element, Carry sum) const {
    gradient[element] = static_cast<T>(sum);
  }

  Gradients<T> of;
  CudaLoops<2> loops;
  bool needs_offsets;  // whether an operand that is read has repeated elements
  T* gradient;
};

template <class Gradient, typename T>
const char* LaunchSum(const CudaBinaryGradLaunch& launch, const Gradients<T>& of,
                      const CudaOperandGradient& operand) {
  const bool needs_offsets =
      (Gradient::kReadsX && launch.x_is_repeated) || (Gradient::kReadsY && launch.y_is_repeated);
  return LaunchFold(
      operand.sum,
      GradientSum<Gradient, T>{of, launch.loops, needs_offsets, static_cast<T*>(operand.gradient)},
      launch.workspace, launch.grid.stream);
}

// `kVectors`: with a kernel for vectors.
template <class Functor, bool kVectors, typename T, typename Out>
const char* LaunchForward(const CudaBinaryLaunch& launch) {
  const CudaOperand<T> x{static_cast<const T*>(launch.x), launch.x_step};
  const CudaOperand<T> y{static_cast<const T*>(launch.y), launch.y_step};
  auto* out = static_cast<Out*>(launch.out);
  const auto stream = static_cast<cudaStream_t>(launch.grid.stream);
  constexpr int kSize = kVectors ? kVectorSize<T> : 1;
  if (kVectors && launch.has_vectors) {
    const bool is_aligned = (x.step == 0 || IsAlignedTo(x.data, 16)) &&
                            (y.step == 0 || IsAlignedTo(y.data, 16)) && IsAlignedTo(out, 16);
    Combine<Functor, kSize, T, Out><<<launch.grid.blocks, kCudaThreads, 0, stream>>>(
        Functor(), x, y, out, launch.loops, is_aligned);
  } else {
    Combine<Functor, 1, T, Out><<<launch.grid.blocks, kCudaThreads, 0, stream>>>(
        Functor(), x, y, out, launch.loops, false);
  }
  return LaunchFailure();
}

template <class XGradient, class YGradient, typename T>
const char* LaunchGradients(const CudaBinaryGradLaunch& launch) {
  Gradients<T> of{.x = {static_cast<const T*>(launch.x), launch.x_step},
                  .y = {static_cast<const T*>(launch.y), launch.y_step},
                  .out = static_cast<const T*>(launch.out),
                  .dout = static_cast<const T*>(launch.dout),
                  .dx = nullptr,
                  .dy = nullptr};
  // Sums come first, since X@GRAD may be written over Out@GRAD.
  if (launch.of_x.is_sum) {
    if (const char* failure = LaunchSum<XGradient, T>(launch, of, launch.of_x)) return failure;
  } else {
    of.dx = static_cast<T*>(launch.of_x.gradient);
  }
  if (launch.of_y.is_sum) {
    if (const char* failure = LaunchSum<YGradient, T>(launch, of, launch.of_y)) return failure;
  } else {
    of.dy = static_cast<T*>(launch.of_y.gradient);
  }
  if (std::is_same_v<XGradient, CudaPassGradient> && of.dx == of.dout) of.dx = nullptr;
  if (of.dx == nullptr && of.dy == nullptr) return nullptr;
  const auto stream = static_cast<cudaStream_t>(launch.grid.stream);
  if (launch.has_vectors) {
    const bool is_aligned = (of.x.step == 0 || IsAlignedTo(of.x.data, 16)) &&
                            (of.y.step == 0 || IsAlignedTo(of.y.data, 16)) &&
                            IsAlignedTo(of.out, 16) && IsAlignedTo(of.dout, 16) &&
                            IsAlignedTo(of.dx, 16) && IsAlignedTo(of.dy, 16);
    CombineGradients<XGradient, YGradient, kVectorSize<T>, T>
        <<<launch.grid.blocks, kCudaThreads, 0, stream>>>(of, launch.loops, is_aligned);
  } else {
    CombineGradients<XGradient, YGradient, 1, T>
        <<<launch.grid.blocks, kCudaThreads, 0, stream>>>(of, launch.loops, false);
  }
  return LaunchFailure();
}

}  // namespace cuda_binary

// Add the kernels of an op.
template <class Functor>
void AddCudaFloatBinary(OpRegistry& registry, const char* type) {
  using cuda_binary::LaunchForward;
  AddCudaBinaryKernel(registry, type, kDTypeOf<float>, LaunchForward<Functor, true, float, float>);
  AddCudaBinaryKernel(registry, type, kDTypeOf<double>,
                      LaunchForward<Functor, true, double, double>);
}

// Without vectors: integers are counters and ids, of which there are few.
template <class Functor>
void AddCudaIntegerBinary(OpRegistry& registry, const char* type) {
  using cuda_binary::LaunchForward;
  AddCudaBinaryKernel(registry, type, kDTypeOf<int32_t>,
                      LaunchForward<Functor, false, int32_t, int32_t>);
  AddCudaBinaryKernel(registry, type, kDTypeOf<int64_t>,
                      LaunchForward<Functor, false, int64_t, int64_t>);
}

template <class Functor>
void AddCudaBinary(OpRegistry& registry, const char* type) {
  AddCudaFloatBinary<Functor>(registry, type);
  AddCudaIntegerBinary<Functor>(registry, type);
}

// Adds the kernels of its gradient op.
template <class XGradient, class YGradient>
void AddCudaBinaryGradients(OpRegistry& registry, const char* type) {
  using cuda_binary::LaunchGradients;
  AddCudaBinaryGradKernel(registry, type, kDTypeOf<float>,
                          LaunchGradients<XGradient, YGradient, float>);
  AddCudaBinaryGradKernel(registry, type, kDTypeOf<double>,
                          LaunchGradients<XGradient, YGradient, double>);
}

}  // namespace skiff
