// Sums over axes of a tensor on a device, for the gradients of ops that repeat elements.
//
// An output is the sum of `copies` elements. Lanes of a warp share them if they are neighbours in
// memory; otherwise neighbouring threads take neighbouring outputs. If there are few outputs, their
// copies are cut into parts, whose sums a second pass adds up. All of that depends on the sizes
// alone, so the order of the sums does as well. Sums of float32 are carried in float64.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/op/kernel.h"
#include "operators/tensor/kernels/cuda_words.cuh"
#include "operators/tensor/kernels/data_mover.h"

namespace skiff {

namespace axis_sum {

inline constexpr int kMaxAxes = Shape::kMaxRank;
inline constexpr int kWarp = 32;

template <typename T>
using Carry = std::conditional_t<std::is_same_v<T, float>, double, T>;

template <typename Index>
struct StridedAxes {
  struct Axis {
    Divisor<Index> dim;
    int64_t stride;
  };
  int count = 0;
  Axis axes[kMaxAxes];

  __device__ int64_t Offset(Index index) const {
    int64_t offset = 0;
    for (int i = count - 1; i >= 0; --i) {
      offset += static_cast<int64_t>(axes[i].dim.Split(&index)) * axes[i].stride;
    }
    return offset;
  }
};

template <typename Index>
struct Shares {
  StridedAxes<Index> kept;
  StridedAxes<Index> summed;
  Index outputs;
  Index copies;
  Index parts;
  Index part_copies;
  Divisor<Index> outputs_divisor;
};

// Sets sums[part][output]. kLanes: 1 or a warp's.
template <typename T, typename Sum, typename Index, int kLanes>
__global__ void SumParts(Shares<Index> shares, const T* x, Sum* sums) {
  const Index units = shares.outputs * shares.parts;
  const Index step = Index{gridDim.x} * blockDim.x / kLanes;
  const Index lane = threadIdx.x % kLanes;
  for (Index unit = (Index{blockIdx.x} * blockDim.x + threadIdx.x) / kLanes; unit < units;
       unit += step) {
    Index part = unit;
    const T* const from = x + shares.kept.Offset(shares.outputs_divisor.Split(&part));
    const Index begin = part * shares.part_copies;
    const Index rest = shares.copies - begin;
    const Index end = begin + (rest < shares.part_copies ? rest : shares.part_copies);
    Carry<T> sum = 0;
#pragma unroll 4
    for (Index copy = begin + lane; copy < end; copy += kLanes) {
      sum += from[shares.summed.Offset(copy)];
    }
    if constexpr (kLanes > 1) {
      // The lanes of a warp have the same unit.
      for (int distance = kLanes / 2; distance > 0; distance /= 2) {
        sum += __shfl_down_sync(0xFFFFFFFF, sum, distance);
      }
    }
    if (lane == 0) sums[unit] = static_cast<Sum>(sum);
  }
}

template <typename T>
__global__ void JoinParts(int64_t outputs, int64_t parts, const Carry<T>* sums, T* out) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < outputs; i += stride) {
    Carry<T> sum = 0;
#pragma unroll 4
    for (int64_t part = 0; part < parts; ++part) sum += sums[part * outputs + i];
    out[i] = static_cast<T>(sum);
  }
}

}  // namespace axis_sum

// T is float, double, uint32_t or uint64_t; integers wrap around.
template <typename T>
class CudaAxisSum {
 public:
  // Sums over the axes of x[dims] that are `is_summed`. The sum of no elements is 0.
  CudaAxisSum(PrepareContext& context, const std::vector<int64_t>& dims,
              const std::vector<bool>& is_summed) {
    // From the innermost axis; neighbours of one kind become one.
    int64_t stride = 1;
    for (size_t i = dims.size(); i-- > 0;) {
      if (dims[i] == 1) continue;
      const bool continues = !axes_.empty() && axes_.back().is_summed == is_summed[i];
      if (continues) {
        axes_.back().dim *= dims[i];
      } else {
        axes_.push_back({dims[i], stride, is_summed[i]});
      }
      (is_summed[i] ? copies_ : outputs_) *= dims[i];
      stride *= dims[i];
    }
    if (outputs_ == 0 || copies_ == 0) return;
    shares_warps_ = !axes_.empty() && axes_.front().is_summed && axes_.front().dim >= kLeastOfWarp;
    // Enough threads for a large device, with work worth a thread.
    constexpr int64_t kThreads = int64_t{1} << 18;
    constexpr int64_t kLeastCopies = 32;
    const int64_t lanes = shares_warps_ ? axis_sum::kWarp : 1;
    const int64_t most = (copies_ + kLeastCopies * lanes - 1) / (kLeastCopies * lanes);
    const int64_t wanted = std::clamp<int64_t>(kThreads / lanes / outputs_, 1, most);
    part_copies_ = (copies_ + wanted - 1) / wanted;
    parts_ = (copies_ + part_copies_ - 1) / part_copies_;
    if (parts_ > 1) {
      partials_ = context.RequestWorkspace(MultiplyCounts(parts_, outputs_) *
                                           int64_t{sizeof(axis_sum::Carry<T>)});
    }
  }

  void Run(const KernelContext& run, const void* x, void* out) const {
    if (outputs_ == 0 || copies_ == 0) {
      return MoverOf(run).ZeroBytes(run, out, outputs_ * int64_t{sizeof(T)});
    }
    if (parts_ == 1) return Launch(run, static_cast<const T*>(x), static_cast<T*>(out));
    auto* const sums = static_cast<axis_sum::Carry<T>*>(run.workspace(partials_));
    Launch(run, static_cast<const T*>(x), sums);
    axis_sum::JoinParts<T><<<CudaBlocksOfThreads(outputs_), kCudaThreads, 0, StreamOf(run)>>>(
        outputs_, parts_, sums, static_cast<T*>(out));
    CheckLaunch("sums over axes");
  }

 private:
  // Summed neighbours in memory that are worth the lanes of a warp.
  static constexpr int64_t kLeastOfWarp = 8;

  struct Axis {
    int64_t dim;
    int64_t stride;
    bool is_summed;
  };

  template <typename Sum>
  void Launch(const KernelContext& run, const T* x, Sum* sums) const {
    const int64_t threads = outputs_ * parts_ * (shares_warps_ ? axis_sum::kWarp : 1);
    VisitIndexType(std::max(outputs_ * copies_, threads), [&]<typename Index>() {
      axis_sum::Shares<Index> shares{.kept = AxesOf<Index>(false),
                                     .summed = AxesOf<Index>(true),
                                     .outputs = static_cast<Index>(outputs_),
                                     .copies = static_cast<Index>(copies_),
                                     .parts = static_cast<Index>(parts_),
                                     .part_copies = static_cast<Index>(part_copies_),
                                     .outputs_divisor = Divisor<Index>(outputs_)};
      const int blocks = CudaBlocksOfThreads(threads);
      if (shares_warps_) {
        axis_sum::SumParts<T, Sum, Index, axis_sum::kWarp>
            <<<blocks, kCudaThreads, 0, StreamOf(run)>>>(shares, x, sums);
      } else {
        axis_sum::SumParts<T, Sum, Index, 1>
            <<<blocks, kCudaThreads, 0, StreamOf(run)>>>(shares, x, sums);
      }
    });
    CheckLaunch("sums over axes");
  }

  // The axes of one kind, the outermost first.
  template <typename Index>
  axis_sum::StridedAxes<Index> AxesOf(bool is_summed) const {
    axis_sum::StridedAxes<Index> result;
    for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
      if (axis->is_summed != is_summed) continue;
      result.axes[result.count++] = {Divisor<Index>(axis->dim), axis->stride};
    }
    return result;
  }

  std::vector<Axis> axes_;  // the innermost first
  int64_t outputs_ = 1;
  int64_t copies_ = 1;
  int64_t part_copies_ = 1;
  int64_t parts_ = 1;
  bool shares_warps_ = false;
  int partials_ = -1;
};

}  // namespace skiff
