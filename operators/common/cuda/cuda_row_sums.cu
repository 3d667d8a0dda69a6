#include <cuda_runtime.h>

#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_row_sums.h"
#include "operators/common/cuda/cuda_vectors.cuh"
#include "operators/common/cuda/cuda_words.cuh"

namespace skiff {
namespace {

constexpr int64_t kChunk = 32;

// Rows [outer, count, inner] that are added to those of a tensor [outer, length, inner].
struct AddedRows {
  SortedRows sorted;
  int64_t inner;
  WideDivisor inner_divisor;
  int64_t columns;  // outer * inner
  WideDivisor columns_divisor;
  int64_t chunks;
  // Where the sum of a row goes, by the row's first place in the sorted list, of one outer index;
  // nullptr: to the row.
  const uint32_t* targets;

  // Return the offset of a column in row `number` of one of the two.
  __device__ int64_t Offset(int64_t outer, int64_t rows, int64_t number, int64_t column) const {
    return (outer * rows + number) * inner + column;
  }
  // Returns the offset of a column of the sum of a row.
  __device__ int64_t OffsetOfSum(int64_t first, uint32_t row, int64_t outer, int64_t column) const {
    return targets == nullptr ? Offset(outer, sorted.length, row, column)
                              : targets[first] * inner + column;
  }
  __device__ int64_t ChunkEnd(int64_t chunk) const {
    const int64_t end = (chunk + 1) * kChunk;
    return end < sorted.count ? end : sorted.count;
  }
};

// The columns of a tensor that a thread looks after.
struct Column {
  int64_t chunk;
  int64_t number;
  int64_t outer;
  int64_t inner;

  __device__ Column(const AddedRows& added, int64_t i) {
    auto rest = static_cast<uint64_t>(i);
    number = static_cast<int64_t>(added.columns_divisor.TakeRemainder(&rest));
    chunk = static_cast<int64_t>(rest);
    rest = static_cast<uint64_t>(number);
    inner = static_cast<int64_t>(added.inner_divisor.TakeRemainder(&rest));
    outer = static_cast<int64_t>(rest);
  }
};

// heads and tails, [chunks][columns]: the sums of a chunk's part of a row that has begun in an
// earlier chunk, and of one that begins here and goes on in the next. kAdds: sums are added to what
// `out` has.
template <typename T, bool kAdds>
__global__ void AddChunks(AddedRows added, const T* values, T* out, WideType<T>* heads,
                          WideType<T>* tails) {
  const SortedRows& sorted = added.sorted;
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  const int64_t units = added.chunks * added.columns;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < units; i += stride) {
    const Column column(added, i);
    const int64_t begin = column.chunk * kChunk;
    const int64_t end = added.ChunkEnd(column.chunk);
    const uint32_t before = begin == 0 ? sorted.length : sorted.rows[begin - 1];
    const uint32_t after = end == sorted.count ? sorted.length : sorted.rows[end];
    uint32_t row = sorted.length;  // whose sum `sum` is
    int64_t first_of_row = begin;
    bool is_head = false;
    WideType<T> sum = 0;
    const auto finish = [&](bool goes_on) {
      if (row >= sorted.length) return;
      if (is_head) {
        heads[i] = sum;
      } else if (goes_on) {
        tails[i] = sum;
      } else {
        T* const to = out + added.OffsetOfSum(first_of_row, row, column.outer, column.inner);
        *to = Rounded<T>(kAdds ? Widened(*to) + sum : sum);
      }
    };
    // Several loads at a time: a row has too few columns to hide their latency otherwise.
    constexpr int kLoads = 4;
    for (int64_t first = begin; first < end; first += kLoads) {
      uint32_t rows[kLoads];
      WideType<T> loaded[kLoads];
#pragma unroll
      for (int j = 0; j < kLoads; ++j) {
        const int64_t at = first + j;
        rows[j] = at < end ? sorted.rows[at] : sorted.length;
        loaded[j] = rows[j] < sorted.length
                        ? Widened(values[added.Offset(column.outer, sorted.count,
                                                      sorted.positions[at], column.inner)])
                        : WideType<T>(0);
      }
#pragma unroll
      for (int j = 0; j < kLoads; ++j) {
        // Numbers of no row are the last.
        if (rows[j] >= sorted.length) continue;
        if (rows[j] != row) {
          finish(/*goes_on=*/false);
          is_head = first + j == begin && rows[j] == before;
          row = rows[j];
          first_of_row = first + j;
          sum = 0;
        }
        sum += loaded[j];
      }
    }
    finish(/*goes_on=*/row == after);
  }
}

// Adds up the parts of each row that begins in a chunk and goes on in the next.
template <typename T, bool kAdds>
__global__ void JoinChunks(AddedRows added, T* out, const WideType<T>* heads,
                           const WideType<T>* tails) {
  const SortedRows& sorted = added.sorted;
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  const int64_t units = (added.chunks - 1) * added.columns;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < units; i += stride) {
    const Column column(added, i);
    const int64_t begin = column.chunk * kChunk;
    const int64_t end = begin + kChunk;
    const uint32_t row = sorted.rows[end - 1];
    if (row >= sorted.length || row != sorted.rows[end]) continue;
    if (begin > 0 && row == sorted.rows[begin - 1]) continue;  // it has begun earlier
    // The first position behind `end` that has another row.
    int64_t last = end;
    int64_t other = sorted.count;
    while (other - last > 1) {
      const int64_t middle = (last + other) / 2;
      (sorted.rows[middle] == row ? last : other) = middle;
    }
    WideType<T> sum = tails[i];
    const int64_t last_chunk = last / kChunk;
#pragma unroll 8
    for (int64_t chunk = column.chunk + 1; chunk <= last_chunk; ++chunk) {
      sum += heads[chunk * added.columns + column.number];
    }
    int64_t first = end - 1;
    while (first > begin && sorted.rows[first - 1] == row) --first;
    T* const to = out + added.OffsetOfSum(first, row, column.outer, column.inner);
    *to = Rounded<T>(kAdds ? Widened(*to) + sum : sum);
  }
}

int64_t ChunksOf(int64_t count) { return (count + kChunk - 1) / kChunk; }

template <typename T, bool kAdds>
void LaunchAddUp(const KernelContext& run, const AddedRows& added, const T* values, T* out,
                 WideType<T>* partials) {
  WideType<T>* const heads = partials;
  WideType<T>* const tails = heads + added.chunks * added.columns;
  AddChunks<T, kAdds>
      <<<CudaBlocksOfThreads(added.chunks * added.columns), kCudaThreads, 0, StreamOf(run)>>>(
          added, values, out, heads, tails);
  if (added.chunks > 1) {
    JoinChunks<T, kAdds><<<CudaBlocksOfThreads((added.chunks - 1) * added.columns), kCudaThreads, 0,
                           StreamOf(run)>>>(added, out, heads, tails);
  }
  CheckLaunch("sums of rows");
}

}  // namespace

template <typename T>
CudaRowSums<T>::CudaRowSums(PrepareContext& context, int64_t capacity, int64_t columns)
    : sort_(context, capacity),
      partials_(context.RequestWorkspace(2 * ChunksOf(capacity) * columns *
                                         int64_t{sizeof(WideType<T>)})) {}

template <typename T>
void CudaRowSums<T>::AddSorted(const KernelContext& run, const SortedRows& sorted, int64_t width,
                               const void* values, void* dense) const {
  const AxisExtents rows{.outer = 1, .length = sorted.length, .inner = width};
  AddUp(run, sorted, rows, /*targets=*/nullptr, values, /*adds=*/true, dense);
}

template <typename T>
void CudaRowSums<T>::SetAt(const KernelContext& run, const SortedRows& sorted,
                           const uint32_t* targets, int64_t width, const void* values,
                           void* sums) const {
  const AxisExtents rows{.outer = 1, .length = sorted.length, .inner = width};
  AddUp(run, sorted, rows, targets, values, /*adds=*/false, sums);
}

template <typename T>
void CudaRowSums<T>::SortAndAddUp(const KernelContext& run, const AxisExtents& axis, int64_t count,
                                  const void* values, bool adds, void* out) const {
  if (count == 0 || axis.lines() == 0 || axis.length == 0) return;
  AddUp(run, Sort(run, count, axis.length), axis, /*targets=*/nullptr, values, adds, out);
}

template <typename T>
void CudaRowSums<T>::AddUp(const KernelContext& run, const SortedRows& sorted,
                           const AxisExtents& axis, const uint32_t* targets, const void* values,
                           bool adds, void* out) const {
  if (sorted.count == 0 || axis.lines() == 0) return;
  const AddedRows added{.sorted = sorted,
                        .inner = axis.inner,
                        .inner_divisor = WideDivisor(axis.inner),
                        .columns = axis.lines(),
                        .columns_divisor = WideDivisor(axis.lines()),
                        .chunks = ChunksOf(sorted.count),
                        .targets = targets};
  const T* const from = static_cast<const T*>(values);
  T* const to = static_cast<T*>(out);
  auto* const partials = static_cast<WideType<T>*>(run.workspace(partials_));
  if (adds) {
    LaunchAddUp<T, true>(run, added, from, to, partials);
  } else {
    LaunchAddUp<T, false>(run, added, from, to, partials);
  }
}

template class CudaRowSums<float>;
template class CudaRowSums<double>;
template class CudaRowSums<BFloat16>;
template class CudaRowSums<Float16>;
template class CudaRowSums<uint32_t>;
template class CudaRowSums<uint64_t>;

}  // namespace skiff
