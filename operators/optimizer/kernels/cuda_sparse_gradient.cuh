// The gradient of one parameter that is selected rows, on CUDA, as the update of the optimizers
// reads it (cuda_update.cuh): the sum of each row, by row or by the parameter's rows.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "framework/base/element_count.h"
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_chunks.cuh"
#include "operators/common/cuda/cuda_division.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_selected_rows.h"
#include "operators/optimizer/kernels/update_arguments.h"

namespace skiff {

// The rows that the gradient has, for an update of these alone.
template <typename T>
struct CudaRowGradients {
  SortedRows sorted;
  const T* sums = nullptr;  // [slots, width]: the gradient of a row at its first slot
  int64_t width = 0;
};

// The rows that the gradient has, for an update of all rows.
template <typename T>
struct CudaRowsBySlot {
  const T* sums = nullptr;         // [slots, width]
  const int32_t* slots = nullptr;  // of each row of the parameter; -1: the gradient lacks the row
  int64_t width = 0;
};

// LoadPack of the gradient, which is zero in rows that it lacks. `at` counts the elements of the
// parameter.
template <bool kIsWhole, typename T>
__device__ Pack<T> LoadRows(const CudaRowsBySlot<T>& rows, int64_t at, int count) {
  auto [row, column] = Divide(at, rows.width);
  if (kIsWhole && rows.width % kPackSize<T> == 0) {
    const int64_t slot = rows.slots[row];
    return slot < 0 ? Pack<T>{} : LoadPack<true>(rows.sums + slot * rows.width + column, count);
  }
  Pack<T> pack{};
#pragma unroll
  for (int j = 0; j < kPackSize<T>; ++j) {
    if (j >= count) break;
    const int64_t slot = rows.slots[row];
    if (slot >= 0) pack.values[j] = rows.sums[slot * rows.width + column];
    if (++column < rows.width) continue;
    column = 0;
    ++row;
  }
  return pack;
}

// Sets values[i] from two-byte numbers.
struct HalvesToFloats {
  template <int kCount>
  __device__ void Do(int64_t i) const {
    if constexpr (kCount == kPackSize<float>) {
      if (is_aligned) {
        StoreWhole(LoadHalves<true>(halves + i, is_float16, kCount), values + i);
        return;
      }
    }
#pragma unroll
    for (int k = 0; k < kCount; ++k) values[i + k] = FloatOfHalf(halves[i + k], is_float16);
  }

  const uint16_t* halves;
  bool is_float16;
  bool is_aligned;
  float* values;
};

// The gradient, with the workspace for its sums.
template <typename T>
class CudaSparseGradient {
 public:
  // has_slots: whether BySlot will be called. Throws Error if there are too many rows for a device.
  CudaSparseGradient(PrepareContext& context, const UpdateArguments& arguments, bool has_slots)
      : grad_(arguments.grads[0]),
        half_(arguments.has_half_grads ? arguments.half : kDTypeOf<T>),
        merged_(context, context.Input("Grad")) {
    const TensorMeta& grad = context.Input("Grad");
    sums_ = context.RequestWorkspace(ByteCount(grad.shape.element_count(), kDTypeOf<T>));
    if (has_slots) slots_ = context.RequestWorkspace(ByteCount(grad.height(), DType::kInt32));
  }

  // Add up the values of each row, and return where the sums are, in the workspace of the run.
  CudaRowGradients<T> Rows(const KernelContext& run) const {
    const Tensor& grad = run.input(grad_);
    T* const sums = static_cast<T*>(run.workspace(sums_));
    const CudaRowGradients<T> rows{
        .sorted = merged_.Sort(run, grad), .sums = sums, .width = RowWidth(grad.shape())};
    merged_.SetAtFirst(run, rows.sorted, rows.width, ValuesOf(run, grad, sums), sums);
    return rows;
  }
  CudaRowsBySlot<T> BySlot(const KernelContext& run) const {
    const CudaRowGradients<T> rows = Rows(run);
    auto* const slots = static_cast<int32_t*>(run.workspace(slots_));
    merged_.SetFirstSlots(run, rows.sorted, slots);
    return {.sums = rows.sums, .slots = slots, .width = rows.width};
  }

 private:
  // `floats` are where two-byte values become floats.
  const T* ValuesOf(const KernelContext& run, const Tensor& grad, T* floats) const {
    if constexpr (std::is_same_v<T, float>) {
      if (half_ != DType::kFloat32) {
        const auto* halves = static_cast<const uint16_t*>(grad.raw_data());
        const int64_t count = grad.element_count();
        ForEachPackOnDevice<float>(
            run, "two-byte gradient", count, count,
            HalvesToFloats{halves, half_ == DType::kFloat16,
                           IsHalfPackAligned(halves) && IsPackAligned(floats), floats});
        return floats;
      }
    }
    return grad.data<T>();
  }

  int grad_;
  DType half_;  // of a two-byte gradient; else T's
  CudaMergedRows<T> merged_;
  int sums_ = -1;
  int slots_ = -1;
};

}  // namespace skiff
