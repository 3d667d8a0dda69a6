// Kernels over lines of numbers, such as rows: each is the work of some lanes of a warp, or of a
// block if it is long. The lines of an inner axis, whose elements are far apart, are the work of a
// thread each, so that neighbouring threads read neighbouring elements.
//
// How a line is shared depends on sizes alone, and so does the order of its sums.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "operators/common/axis_extents.h"
#include "operators/common/cuda/cuda_combine.cuh"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_launch.h"

namespace skiff {

// Some neighbouring lanes of a warp, a power of two. Every lane of the warp makes the same calls.
struct CudaLanes {
  int lane;
  int size;

  // Returns, on all of them, the values joined.
  template <class Value, class Join>
  __device__ Value Reduce(Value value, const Join& join) const {
    return CombineWarp(value, join, size);
  }

  // Returns the sums over them.
  template <class Value>
  __device__ CudaSums<Value> Scan(Value value) const {
    return ScanWarp(value, size);
  }

  // All threads have read before any of them writes.
  __device__ void Sync() const { __syncwarp(); }
};

// All threads of a block.
struct CudaBlock {
  int lane;
  static constexpr int size = kCudaThreads;

  template <class Value, class Join>
  __device__ Value Reduce(Value value, const Join& join) const {
    return CombineBlock(value, join);
  }

  template <class Value>
  __device__ CudaSums<Value> Scan(Value value) const {
    return ScanBlock(value);
  }

  __device__ void Sync() const { __syncthreads(); }
};

// As many elements as a lane takes at once. Half as many bytes of half: so a lane has the same
// elements as in float, and sums have the same bits.
template <typename T>
inline constexpr int kLinePack = kPackSize<WideType<T>>;

// Element j of a line is at start + j * stride. If is_packed, the stride is 1, and packs never
// cross the line's end.
struct CudaLine {
  int64_t index;
  int64_t start;
  int64_t stride;
  int64_t length;
  bool is_packed;
  bool exists;  // false for lanes that have no line, but take part in shuffles; its length is 0

  // Calls body.template operator()<kCount>(j, place of element j) for elements [j, j + kCount) of
  // the thread's share.
  template <typename T, class Group, class Body>
  __device__ void ForEach(const Group& group, const Body& body) const {
    if (is_packed) {
      constexpr int kCount = kLinePack<T>;
      for (int64_t j = group.lane * kCount; j < length; j += group.size * kCount) {
        body.template operator()<kCount>(j, start + j);
      }
    } else {
#pragma unroll 2
      for (int64_t j = group.lane; j < length; j += group.size) {
        body.template operator()<1>(j, start + j * stride);
      }
    }
  }
};

// The lines of a kernel, and the number of lanes for each, unless it has a block.
struct CudaLines {
  AxisExtents extents;
  int64_t count;
  bool is_packed;
  int lanes;

  __device__ CudaLine LineOf(int64_t index) const {
    CudaLine line;
    line.index = index;
    line.exists = index < count;
    line.stride = extents.inner;
    line.length = line.exists ? extents.length : 0;
    line.is_packed = is_packed;
    if (extents.inner == 1) {
      line.start = index * extents.length;
    } else {
      const CudaDivision at = Divide(index, extents.inner);
      line.start = at.quotient * extents.length * extents.inner + at.rest;
    }
    return line;
  }
};

template <bool kIsBlock, class Work>
__global__ void __launch_bounds__(kCudaThreads) CallForLines(CudaLines lines, Work work) {
  const int thread = static_cast<int>(threadIdx.x);
  if constexpr (kIsBlock) {
    for (int64_t i = blockIdx.x; i < lines.count; i += gridDim.x) {
      work(CudaBlock{thread}, lines.LineOf(i));
    }
  } else {
    const CudaLanes group{thread % lines.lanes, lines.lanes};
    const int in_block = kCudaThreads / lines.lanes;
    const int64_t stride = int64_t{gridDim.x} * in_block;
    // All threads of a block go on as long as its first line exists: shuffles need whole warps.
    for (int64_t first = int64_t{blockIdx.x} * in_block; first < lines.count; first += stride) {
      work(group, lines.LineOf(first + thread / lines.lanes));
    }
  }
}

// Calls work(group, line) on the device for each line along the axis: once for each thread of the
// group that shares the line. T is the dtype of the elements. `what` names the work in an Error.
template <typename T, class Work>
void ForEachLineOnDevice(const KernelContext& run, const char* what, const AxisExtents& extents,
                         const Work& work) {
  // A line this long keeps a block busy; with few lines, a shorter one does.
  constexpr int64_t kLong = 1024;
  constexpr int64_t kLongOfFew = 128;
  constexpr int64_t kFew = 1024;
  CudaLines lines{.extents = extents, .count = extents.lines(), .is_packed = false, .lanes = 1};
  if (lines.count == 0) return;
  const bool is_row = extents.inner == 1;
  lines.is_packed = is_row && extents.length % kLinePack<T> == 0;
  if (is_row && (extents.length > kLong || (extents.length > kLongOfFew && lines.count <= kFew))) {
    CallForLines<true><<<CudaBlocks(lines.count), kCudaThreads, 0, StreamOf(run)>>>(lines, work);
  } else {
    const int64_t steps = lines.is_packed ? extents.length / kLinePack<T> : extents.length;
    while (is_row && lines.lanes < std::min<int64_t>(steps, kCudaWarp)) lines.lanes *= 2;
    const int64_t in_block = kCudaThreads / lines.lanes;
    const int64_t blocks = (lines.count + in_block - 1) / in_block;
    CallForLines<false><<<CudaBlocks(blocks), kCudaThreads, 0, StreamOf(run)>>>(lines, work);
  }
  CheckLaunch(what);
}

// ---- what groups add up

// The largest element of a line, and the sum of exp(element - the largest).
template <typename T>
struct SoftmaxTotal {
  T max;
  T sum;
};

template <typename T>
struct JoinSoftmaxTotals {
  __device__ SoftmaxTotal<T> operator()(const SoftmaxTotal<T>& a, const SoftmaxTotal<T>& b) const {
    const T max = a.max < b.max ? b.max : a.max;
    return {max, a.sum * std::exp(a.max - max) + b.sum * std::exp(b.max - max)};
  }
};

// Returns the total of x on the line, to every thread of the group, in one pass over memory. The
// maximum is at least the lowest finite number, so that elements of minus infinity add 0.
template <typename T, class Group>
__device__ SoftmaxTotal<T> SoftmaxTotalOf(const Group& group, const CudaLine& line, const T* x,
                                          bool is_aligned) {
  SoftmaxTotal<T> total{std::numeric_limits<T>::lowest(), T{0}};
  line.ForEach<T>(group, [&]<int kCount>(int64_t, int64_t at) {
    const CudaValues<T, kCount> values = LoadValues<kCount>(x + at, is_aligned);
    T max = total.max;
#pragma unroll
    for (int k = 0; k < kCount; ++k) max = max < values.at[k] ? values.at[k] : max;
    if (max > total.max) {
      total.sum *= std::exp(total.max - max);
      total.max = max;
    }
#pragma unroll
    for (int k = 0; k < kCount; ++k) total.sum += std::exp(values.at[k] - max);
  });
  return group.Reduce(total, JoinSoftmaxTotals<T>{});
}

}  // namespace skiff
