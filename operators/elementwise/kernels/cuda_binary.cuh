// CUDA kernels of a binary formula (binary_facts.h), which broadcast, and of its gradients, which
// sum over repeated elements.
//
// If neighbouring results come from neighbours, a thread takes vectors of 16 bytes. Of half,
// formulas get floats.
#pragma once

#include "operators/common/cuda/cuda_fold_tiles.cuh"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_values_kernels.h"
#include "operators/common/cuda/cuda_vector_loop.cuh"
#include "operators/common/cuda/cuda_vectors.cuh"
#include "operators/common/formula.h"
#include "operators/elementwise/kernels/binary_facts.h"
#include "operators/elementwise/kernels/comparison_facts.h"
#include "operators/elementwise/kernels/cuda_binary.h"
#include "operators/elementwise/kernels/integer_division.h"

namespace skiff {

// An operand: where it begins, and how far to move for the next result.
template <typename T>
struct CudaOperand {
  const T* data;
  int step;
};

namespace cuda_binary {

template <int kSize, typename T>
__device__ CudaVector<WideType<T>, kSize> LoadOperand(const CudaOperand<T>& operand, int64_t offset,
                                                      int count, bool is_whole) {
  if (operand.step != 0) return LoadWide<kSize>(operand.data + offset, count, is_whole);
  CudaVector<WideType<T>, kSize> vector;
  const WideType<T> value = Widened(operand.data[offset]);
#pragma unroll
  for (int j = 0; j < kSize; ++j) vector.values[j] = value;
  return vector;
}

template <class Formula, int kSize, typename T, typename Out>
__global__ void __launch_bounds__(kCudaThreads)
    Combine(CudaOperand<T> x, CudaOperand<T> y, Out* out, CudaLoops<2> loops, bool is_aligned) {
  ForEachVector<kSize>(loops.count(), is_aligned, [&](int64_t i, int count, bool is_whole) {
    int64_t offsets[2];
    loops.SetOffsets(i, offsets);
    const auto xs = LoadOperand<kSize>(x, offsets[0], count, is_whole);
    const auto ys = LoadOperand<kSize>(y, offsets[1], count, is_whole);
    CudaVector<WideType<Out>, kSize> results;
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      results.values[j] = Formula().Value(xs.values[j], ys.values[j]);
    }
    StoreRounded(results, count, is_whole, out + i);
  });
}

// Facts about the gradient of X, or of Y, and about both.
template <class Formula, bool kIsX>
inline constexpr BinaryGradient kGradient =
    kIsX ? Formula::kFacts.x_gradient : Formula::kFacts.y_gradient;
template <class Formula>
inline constexpr BinaryGradient kGradients = Formula::kFacts.gradients();

// The gradient of X, or of Y, at one element.
template <class Formula, bool kIsX, typename T>
__device__ T GradientAt(T x, T y, T out, T dout) {
  if constexpr (kGradient<Formula, kIsX>.is_passed) {
    return dout;
  } else if constexpr (kIsX) {
    return Formula().XGradient(x, y, out, dout);
  } else {
    return Formula().YGradient(x, y, out, dout);
  }
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
template <class Formula, int kSize, typename T>
__global__ void __launch_bounds__(kCudaThreads)
    CombineGradients(Gradients<T> of, CudaLoops<2> loops, bool is_aligned) {
  ForEachVector<kSize>(loops.count(), is_aligned, [&](int64_t i, int count, bool is_whole) {
    int64_t offsets[2];
    loops.SetOffsets(i, offsets);
    const auto douts = LoadWide<kSize>(of.dout + i, count, is_whole);
    auto xs = douts;
    auto ys = douts;
    auto outs = douts;
    if constexpr (kGradients<Formula>.reads_x) {
      xs = LoadOperand<kSize>(of.x, offsets[0], count, is_whole);
    }
    if constexpr (kGradients<Formula>.reads_y) {
      ys = LoadOperand<kSize>(of.y, offsets[1], count, is_whole);
    }
    if (of.out != nullptr) outs = LoadWide<kSize>(of.out + i, count, is_whole);
    CudaVector<WideType<T>, kSize> dxs;
    CudaVector<WideType<T>, kSize> dys;
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      dxs.values[j] =
          GradientAt<Formula, true>(xs.values[j], ys.values[j], outs.values[j], douts.values[j]);
      dys.values[j] =
          GradientAt<Formula, false>(xs.values[j], ys.values[j], outs.values[j], douts.values[j]);
    }
    if (of.dx != nullptr) StoreRounded(dxs, count, is_whole, of.dx + i);
    if (of.dy != nullptr) StoreRounded(dys, count, is_whole, of.dy + i);
  });
}

// Sums the gradients at all results to which an element of an operand was repeated.
template <class Formula, bool kIsX, typename T>
struct GradientSum {
  static constexpr BinaryGradient kOwn = kGradient<Formula, kIsX>;

  using Carry = double;
  static __device__ Carry Identity() { return 0; }
  static __device__ Carry Join(Carry a, Carry b) { return a + b; }
  __device__ void Add(int64_t i, int64_t, int64_t, Carry* carry) const {
    int64_t offsets[2] = {i, i};
    if constexpr (kOwn.reads_x || kOwn.reads_y) {
      if (needs_offsets) loops.SetOffsets(i, offsets);
    }
    const WideType<T> dout = Widened(of.dout[i]);
    WideType<T> x = dout;
    WideType<T> y = dout;
    if constexpr (kOwn.reads_x) x = Widened(of.x.data[offsets[0]]);
    if constexpr (kOwn.reads_y) y = Widened(of.y.data[offsets[1]]);
    *carry += static_cast<double>(
        GradientAt<Formula, kIsX>(x, y, of.out == nullptr ? dout : Widened(of.out[i]), dout));
  }
  __device__ void Finish(int64_t element, Carry sum) const {
    gradient[element] = Rounded<T>(static_cast<WideType<T>>(sum));
  }

  Gradients<T> of;
  CudaLoops<2> loops;
  bool needs_offsets;  // whether an operand that is read has repeated elements
  T* gradient;
};

template <class Formula, bool kIsX, typename T>
const char* LaunchSum(const CudaBinaryGradLaunch& launch, const Gradients<T>& of,
                      const CudaOperandGradient& operand) {
  constexpr BinaryGradient kOwn = kGradient<Formula, kIsX>;
  const bool needs_offsets =
      (kOwn.reads_x && launch.x_is_repeated) || (kOwn.reads_y && launch.y_is_repeated);
  return LaunchFold(operand.sum,
                    GradientSum<Formula, kIsX, T>{of, launch.loops, needs_offsets,
                                                  static_cast<T*>(operand.gradient)},
                    launch.workspace, launch.grid.stream);
}

// `kVectors`: with a kernel for vectors.
template <class Formula, bool kVectors, typename T, typename Out>
const char* LaunchForward(const CudaBinaryLaunch& launch) {
  const CudaOperand<T> x{static_cast<const T*>(launch.x), launch.x_step};
  const CudaOperand<T> y{static_cast<const T*>(launch.y), launch.y_step};
  auto* out = static_cast<Out*>(launch.out);
  const auto stream = static_cast<cudaStream_t>(launch.grid.stream);
  constexpr int kSize = kVectors ? kVectorSize<T> : 1;
  if (kVectors && launch.has_vectors) {
    const bool is_aligned = (x.step == 0 || IsAlignedTo(x.data, 16)) &&
                            (y.step == 0 || IsAlignedTo(y.data, 16)) && IsAlignedTo(out, 16);
    Combine<Formula, kSize, T, Out>
        <<<launch.grid.blocks, kCudaThreads, 0, stream>>>(x, y, out, launch.loops, is_aligned);
  } else {
    Combine<Formula, 1, T, Out>
        <<<launch.grid.blocks, kCudaThreads, 0, stream>>>(x, y, out, launch.loops, false);
  }
  return LaunchFailure();
}

template <class Formula, typename T>
const char* LaunchGradients(const CudaBinaryGradLaunch& launch) {
  Gradients<T> of{.x = {static_cast<const T*>(launch.x), launch.x_step},
                  .y = {static_cast<const T*>(launch.y), launch.y_step},
                  .out = static_cast<const T*>(launch.out),
                  .dout = static_cast<const T*>(launch.dout),
                  .dx = nullptr,
                  .dy = nullptr};
  // Sums come first, since X@GRAD may be written over Out@GRAD.
  if (launch.of_x.is_sum) {
    if (const char* failure = LaunchSum<Formula, true, T>(launch, of, launch.of_x)) return failure;
  } else {
    of.dx = static_cast<T*>(launch.of_x.gradient);
  }
  if (launch.of_y.is_sum) {
    if (const char* failure = LaunchSum<Formula, false, T>(launch, of, launch.of_y)) return failure;
  } else {
    of.dy = static_cast<T*>(launch.of_y.gradient);
  }
  if (Formula::kFacts.x_gradient.is_passed && of.dx == of.dout) of.dx = nullptr;
  if (of.dx == nullptr && of.dy == nullptr) return nullptr;
  const auto stream = static_cast<cudaStream_t>(launch.grid.stream);
  if (launch.has_vectors) {
    const bool is_aligned = (of.x.step == 0 || IsAlignedTo(of.x.data, 16)) &&
                            (of.y.step == 0 || IsAlignedTo(of.y.data, 16)) &&
                            IsAlignedTo(of.out, 16) && IsAlignedTo(of.dout, 16) &&
                            IsAlignedTo(of.dx, 16) && IsAlignedTo(of.dy, 16);
    CombineGradients<Formula, kVectorSize<T>, T>
        <<<launch.grid.blocks, kCudaThreads, 0, stream>>>(of, launch.loops, is_aligned);
  } else {
    CombineGradients<Formula, 1, T>
        <<<launch.grid.blocks, kCudaThreads, 0, stream>>>(of, launch.loops, false);
  }
  return LaunchFailure();
}

// An integer division, which notes a divisor of 0.
template <class Formula, typename T>
__global__ void __launch_bounds__(kCudaThreads)
    Divide(const T* x, const T* y, T* out, CudaLoops<2> loops, uint64_t* fault) {
  ForEachVector<1>(loops.count(), false, [&](int64_t i, int, bool) {
    int64_t offsets[2];
    loops.SetOffsets(i, offsets);
    const T divisor = y[offsets[1]];
    if (divisor == T{0}) {
      NoteFault(fault, offsets[1], 0);
      out[i] = 0;
    } else {
      out[i] = Formula().Value(x[offsets[0]], divisor);
    }
  });
}

template <class Formula, typename T>
const char* LaunchDivision(const CudaBinaryLaunch& launch) {
  const auto stream = static_cast<cudaStream_t>(launch.grid.stream);
  Divide<Formula, T><<<launch.grid.blocks, kCudaThreads, 0, stream>>>(
      static_cast<const T*>(launch.x), static_cast<const T*>(launch.y), static_cast<T*>(launch.out),
      launch.loops, launch.fault);
  return LaunchFailure();
}

}  // namespace cuda_binary

// Add the kernels of a formula's op and its gradient op for floats, and of the op for integers.
template <class Formula, typename T>
void AddCudaFloatBinary(OpRegistry& registry) {
  constexpr const BinaryFacts& kFacts = Formula::kFacts;
  AddCudaBinaryKernel(registry, kFacts.type, kDTypeOf<T>,
                      cuda_binary::LaunchForward<Formula, true, T, T>);
  if constexpr (kFacts.has_gradient()) {
    AddCudaBinaryGradKernel(registry, kFacts.type, kDTypeOf<T>,
                            cuda_binary::LaunchGradients<Formula, T>);
  }
}
template <class Formula, typename T>
void AddCudaIntegerBinary(OpRegistry& registry) {
  constexpr const BinaryFacts& kFacts = Formula::kFacts;
  if constexpr (kFacts.divides) {
    AddCudaBinaryKernel(registry, kFacts.type, kDTypeOf<T>, cuda_binary::LaunchDivision<Formula, T>,
                        ThrowZeroDivisor);
  } else {
    // Without vectors: integers are counters and ids, of which there are few.
    AddCudaBinaryKernel(registry, kFacts.type, kDTypeOf<T>,
                        cuda_binary::LaunchForward<Formula, false, T, T>);
  }
}

// Adds all of them. A bool is a byte that is 0 or 1.
template <class Formula>
void AddCudaBinary(OpRegistry& registry) {
  AddCudaIntegerBinary<Formula, int32_t>(registry);
  AddCudaIntegerBinary<Formula, int64_t>(registry);
  if constexpr (Formula::kFacts.is_bitwise) {
    AddCudaBinaryKernel(registry, Formula::kFacts.type, DType::kBool,
                        cuda_binary::LaunchForward<Formula, false, uint8_t, uint8_t>);
  } else {
    AddCudaFloatBinary<Formula, float>(registry);
    AddCudaFloatBinary<Formula, double>(registry);
    AddCudaFloatBinary<Formula, BFloat16>(registry);
    AddCudaFloatBinary<Formula, Float16>(registry);
  }
  if constexpr (Formula::kFacts.takes_selected_rows) {
    AddCudaValuesKernels(registry, Formula::kFacts.type);
  }
}

// Adds the kernels of a comparison's op for all dtypes of its CPU kernels. A bool is a byte that is
// 0 or 1.
template <class Formula>
void AddCudaComparison(OpRegistry& registry) {
  const auto add = [&]<typename T>(DType dtype, T) {
    AddCudaBinaryKernel(registry, Formula::kFacts.type, dtype,
                        cuda_binary::LaunchForward<Formula, false, T, bool>);
  };
  add(DType::kBool, uint8_t{});
  add(DType::kUint8, uint8_t{});
  add(DType::kInt32, int32_t{});
  add(DType::kInt64, int64_t{});
  add(DType::kFloat32, float{});
  add(DType::kFloat64, double{});
}

}  // namespace skiff
