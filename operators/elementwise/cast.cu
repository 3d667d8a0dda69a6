// CUDA kernels of cast; cast.cc has the rules. One kernel for each dtype of X, which looks up that
// of Out: casts wait for memory, and a hundred kernels would take long to compile.
#include <type_traits>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_grid.h"
#include "operators/common/cuda/cuda_values_kernels.h"
#include "operators/common/cuda/cuda_vector_loop.cuh"
#include "operators/common/cuda/cuda_vectors.cuh"
#include "operators/common/half.h"
#include "operators/common/integer.h"

namespace skiff {
namespace {

template <typename To, typename From>
__device__ To Convert(From value) {
  if constexpr (kIsHalf<From>) {
    return Convert<To>(Widened(value));
  } else if constexpr (kIsHalf<To>) {
    return Rounded<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{0};
  } else if constexpr (std::is_floating_point_v<From>) {
    return FromFloat<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <typename To, typename From, int kSize>
__device__ void StoreAs(const CudaVector<From, kSize>& values, int count, bool is_whole, void* out,
                        int64_t i) {
  CudaVector<To, kSize> converted;
#pragma unroll
  for (int j = 0; j < kSize; ++j) converted.values[j] = Convert<To>(values.values[j]);
  StoreVector(converted, count, is_whole, static_cast<To*>(out) + i);
}

// At most four: eight halves would become eight floats, whose two stores a warp would spread over
// twice the memory.
template <typename From>
inline constexpr int kCastSize = kVectorSize<From> < 4 ? kVectorSize<From> : 4;

template <typename From>
__global__ void __launch_bounds__(kCudaThreads)
    Cast(const From* x, void* out, DType dtype, int64_t count, bool is_aligned) {
  constexpr int kSize = kCastSize<From>;
  ForEachVector<kSize>(count, is_aligned, [&](int64_t i, int length, bool is_whole) {
    const CudaVector<From, kSize> values = LoadVector<kSize>(x + i, length, is_whole);
    switch (dtype) {
      case DType::kBool:
        StoreAs<bool>(values, length, is_whole, out, i);
        break;
      case DType::kInt8:
        StoreAs<int8_t>(values, length, is_whole, out, i);
        break;
      case DType::kUint8:
        StoreAs<uint8_t>(values, length, is_whole, out, i);
        break;
      case DType::kInt16:
        StoreAs<int16_t>(values, length, is_whole, out, i);
        break;
      case DType::kInt32:
        StoreAs<int32_t>(values, length, is_whole, out, i);
        break;
      case DType::kInt64:
        StoreAs<int64_t>(values, length, is_whole, out, i);
        break;
      case DType::kFloat16:
        StoreAs<Float16>(values, length, is_whole, out, i);
        break;
      case DType::kBFloat16:
        StoreAs<BFloat16>(values, length, is_whole, out, i);
        break;
      case DType::kFloat32:
        StoreAs<float>(values, length, is_whole, out, i);
        break;
      case DType::kFloat64:
        StoreAs<double>(values, length, is_whole, out, i);
        break;
    }
  });
}

// `From`: the type in which the kernel reads X, whose dtype is `dtype`.
template <typename From>
void AddCastKernel(OpRegistry& registry, DType dtype = kDTypeOf<From>) {
  const auto prepare = [](PrepareContext& context) -> std::unique_ptr<Kernel> {
    return MakeRowsKernel(
        [x = In<>(context, "X"), out = Out<>(context, "Out")](const KernelContext& run) {
          const Tensor& from = x.tensor(run);
          Tensor& to = out.tensor(run);
          const int64_t count = from.element_count();
          if (count == 0) return;
          const CudaGrid grid = GridOf(run, (count + kCastSize<From> - 1) / kCastSize<From>);
          Cast<From><<<grid.blocks, kCudaThreads, 0, static_cast<cudaStream_t>(grid.stream)>>>(
              static_cast<const From*>(from.raw_data()), to.raw_data(), to.dtype(), count,
              IsAlignedTo(from.raw_data(), 16) && IsAlignedTo(to.raw_data(), 16));
          const char* failure = LaunchFailure();
          SKIFF_ENFORCE(failure == nullptr, kIo, "cast: launch failed: ", failure);
        });
  };
  registry.AddCudaKernel("cast", dtype, prepare);
}

}  // namespace

void RegisterCastCuda(OpRegistry& registry) {
  AddCastKernel<uint8_t>(registry, DType::kBool);  // a byte that is 0 or 1
  AddCastKernel<int8_t>(registry);
  AddCastKernel<uint8_t>(registry);
  AddCastKernel<int16_t>(registry);
  AddCastKernel<int32_t>(registry);
  AddCastKernel<int64_t>(registry);
  AddCastKernel<Float16>(registry);
  AddCastKernel<BFloat16>(registry);
  AddCastKernel<float>(registry);
  AddCastKernel<double>(registry);
  AddCudaValuesKernels(registry, "cast");
}

}  // namespace skiff
