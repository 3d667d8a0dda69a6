// Common parts of the CUDA kernels of recurrent layers: the time steps of the sequences, with the
// longest first as on the CPU (time_steps.h), and products of another number of rows in each step
// and run.
//
// A product's shape is fixed when it is made. So a step takes one of a few products, with the most
// rows possible, half as many, and so on: the smallest with enough rows. Rows after the step's rows
// are computed from arbitrary memory contents; nothing reads their results. A sum over all rows of
// a run is a product over the most possible rows, with zeros after the run's rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "framework/base/element_count.h"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_long_sum.cuh"
#include "operators/common/cuda/cuda_product.h"
#include "operators/sequence/kernels/cuda_sequences.cuh"
#include "operators/sequence/kernels/sequence_rows.h"
#include "operators/sequence/kernels/time_steps.h"
#include "operators/sequence/kernels/workspace.h"

namespace skiff {

// Sequence j: the row of its first time step, and its index in the LoD.
struct StepSequence {
  friend bool operator==(const StepSequence&, const StepSequence&) = default;

  int64_t row = 0;
  int64_t index = 0;
};

// The sequences of a run as kernels see them.
struct StepSequences {
  const StepSequence* sequences = nullptr;  // nullptr: sequence j is row j
  int64_t next = 1;                         // from a row to that of the next time step

  __device__ int64_t Row(int64_t j, int64_t time) const {
    return sequences == nullptr ? j : sequences[j].row + time * next;
  }
  __device__ int64_t Index(int64_t j) const {
    return sequences == nullptr ? j : sequences[j].index;
  }
};

// A time step as kernels see it: TimeSteps::Step and more.
struct CudaStep {
  StepSequences sequences;
  int64_t time = 0;
  int64_t count = 0;  // sequences that have a row in it
  int64_t first = 0;  // of the step's rows in batch order
  int64_t later = 0;  // sequences that have a row in the next time step
};

// A row of a step, and where the state before it is: a row of the states of all rows, or of the
// initial ones.
struct StepRow {
  int64_t row;
  int64_t before;  // a row, or before the first time step the sequence's index
  bool is_first;

  __device__ StepRow(const CudaStep& step, int64_t j)
      : row(step.sequences.Row(j, step.time)),
        before(step.time == 0 ? step.sequences.Index(j) : step.sequences.Row(j, step.time - 1)),
        is_first(step.time == 0) {}

  // Returns number i of the state before. `initial` may be nullptr: zeros.
  template <typename T>
  __device__ T Before(const T* states, const T* initial, int64_t width, int64_t i) const {
    if (!is_first) return states[before * width + i];
    return initial == nullptr ? T{0} : initial[before * width + i];
  }
};

class CudaTimeSteps {
 public:
  CudaTimeSteps(const PrepareContext& context, int64_t most_sequences, bool is_reverse)
      : is_reverse_(is_reverse),
        order_(static_cast<size_t>(most_sequences)),
        sequences_(context, most_sequences) {}

  // Takes the sequences of a run, which must keep their LoD.
  void Load(const KernelContext& run, const SequenceRows& sequences) {
    count_ = sequences.size();
    steps_.emplace(sequences, is_reverse_, order_.data());
    for (int64_t j = 0; j < count_; ++j) sequences_[j] = {steps_->Row(j, 0), steps_->Index(j)};
    on_device_ = {sequences_.Send(run), is_reverse_ ? -1 : 1};
  }

  int64_t count() const { return count_; }  // of sequences
  const StepSequences& on_device() const { return on_device_; }

  // Call body(CudaStep) for each time step, from the first one or from the last one.
  template <class Body>
  void ForEach(const Body& body) const {
    steps_->ForEach([&](const TimeSteps::Step& step) { body(StepOf(step, 0)); });
  }
  template <class Body>
  void ForEachBackwards(const Body& body) const {
    int64_t later = 0;
    steps_->ForEachBackwards([&](const TimeSteps::Step& step) {
      body(StepOf(step, later));
      later = step.count;
    });
  }

 private:
  CudaStep StepOf(const TimeSteps::Step& step, int64_t later) const {
    return {on_device_, step.time, step.count, step.first, later};
  }

  bool is_reverse_;
  std::vector<int64_t> order_;
  CudaEntries<StepSequence> sequences_;
  std::optional<TimeSteps> steps_;
  StepSequences on_device_;
  int64_t count_ = 0;
};

// Sets row j of `states` to the row of sequence j in `initial`, which has the order of the LoD;
// `initial` may be nullptr: zeros.
template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    LoadStates(StepSequences sequences, const T* initial, int64_t rows, int64_t width,
               int threads_of_row, T* states) {
  ForEachColumn(
      rows, width, threads_of_row, [&](int64_t j) { return sequences.Index(j); },
      [&](int64_t j, int64_t column, int64_t index) {
        states[j * width + column] = initial == nullptr ? T{0} : initial[index * width + column];
      });
}

template <typename T>
void LaunchLoadStates(const KernelContext& run, const CudaTimeSteps& time, const T* initial,
                      int64_t width, T* states) {
  const int64_t rows = time.count();
  if (rows == 0) return;
  const RowThreads threads(rows, width);
  LoadStates<T><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(time.on_device(), initial, rows,
                                                                    width, threads.of_row, states);
  CheckLaunch("initial states");
}

// The other way round: row j of `states` is the gradient of the initial state of sequence j, if j
// is less than `used`; else that is 0.
template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    StoreStates(StepSequences sequences, const T* states, int64_t used, int64_t rows, int64_t width,
                int threads_of_row, T* initial) {
  ForEachColumn(
      rows, width, threads_of_row, [&](int64_t j) { return sequences.Index(j); },
      [&](int64_t j, int64_t column, int64_t index) {
        initial[index * width + column] = j < used ? states[j * width + column] : T{0};
      });
}

template <typename T>
void LaunchStoreStates(const KernelContext& run, const CudaTimeSteps& time, const T* states,
                       int64_t used, int64_t width, T* initial) {
  const int64_t rows = time.count();
  if (rows == 0) return;
  const RowThreads threads(rows, width);
  StoreStates<T><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(
      time.on_device(), states, used, rows, width, threads.of_row, initial);
  CheckLaunch("gradients of initial states");
}

// Returns the shape of the product of a step's rows with a matrix [from, to], or for the gradient
// with its transpose. CudaStepProduct knows the rows.
inline CudaProductShape StepShape(int64_t from, int64_t to, bool is_gradient) {
  if (is_gradient)
    return {.transpose_b = true, .n = from, .k = to, .lda = to, .ldb = to, .ldc = from};
  return {.n = to, .k = from, .lda = from, .ldb = to, .ldc = to};
}

// C = A · op(B) for the rows of a step.
template <typename T>
class CudaStepProduct {
 public:
  // There are at most `most_rows` rows. m of the shape doesn't count. No product is made for less
  // than half of fewest_rows; if that is most_rows, there is one.
  CudaStepProduct(int64_t most_rows, CudaProductShape shape, int64_t fewest_rows = 32) {
    if (shape.n == 0 || shape.k == 0) return;
    for (int64_t rows = most_rows; rows > 0; rows = (rows + 1) / 2) {
      shape.m = rows;
      products_.push_back({rows, CudaProduct<T>(shape)});
      if (rows <= fewest_rows) break;
    }
  }

  int64_t workspace_bytes() const {
    int64_t bytes = 0;
    for (const Sized& sized : products_) bytes = std::max(bytes, sized.product.workspace_bytes());
    return bytes;
  }

  // Computes at least `rows` rows, and at most the most.
  void Run(const KernelContext& run, int64_t rows, const T* a, const T* b, bool adds, T* c,
           int workspace) const {
    if (rows == 0 || products_.empty()) return;
    size_t at = 0;
    while (at + 1 < products_.size() && products_[at + 1].rows >= rows) ++at;
    products_[at].product.Run(StreamOf(run), a, b, c, run.workspace(workspace), T{1},
                              adds ? T{1} : T{0});
  }

 private:
  struct Sized {
    int64_t rows;
    CudaProduct<T> product;
  };

  std::vector<Sized> products_;  // with ever fewer rows
};

// C = A^T · B, a sum over as many rows as there can be: a long one, often.
template <typename T>
class CudaSumProduct {
 public:
  // There may be none; then C is 0.
  CudaSumProduct(int64_t rows, int64_t a_columns, int64_t a_stride, int64_t b_columns,
                 int64_t b_stride)
      : bytes_(a_columns * b_columns * int64_t{sizeof(T)}) {
    if (rows == 0 || a_columns == 0 || b_columns == 0) return;
    const CudaProductShape shape{.transpose_a = true,
                                 .m = a_columns,
                                 .n = b_columns,
                                 .k = rows,
                                 .lda = a_stride,
                                 .ldb = b_stride,
                                 .ldc = b_columns};
    const LongSumCut cut = CutOfLongSum(shape.m, shape.n, shape.k, kMaxSumPartBytes / bytes_);
    if (cut.count > 1) {
      long_sum_.emplace(shape, cut);
    } else {
      product_.emplace(shape);
    }
  }

  int64_t workspace_bytes() const {
    if (long_sum_) return PartsOffset() + long_sum_->part_bytes();
    return product_ ? product_->workspace_bytes() : 0;
  }

  void Run(const KernelContext& run, const T* a, const T* b, T* c, int workspace) const {
    if (long_sum_) {
      auto* const space = static_cast<std::byte*>(run.workspace(workspace));
      long_sum_->Run(StreamOf(run), a, b, c, space, reinterpret_cast<T*>(space + PartsOffset()));
    } else if (product_) {
      product_->Run(StreamOf(run), a, b, c, run.workspace(workspace));
    } else {
      FillBytesOnDevice(run, c, 0, bytes_);
    }
  }

 private:
  // Of the workspace: after that of a product.
  int64_t PartsOffset() const {
    constexpr int64_t kAlignment = 256;
    return RoundUp(long_sum_->product_bytes(), kAlignment);
  }

  int64_t bytes_;  // of C
  // At most one is set.
  std::optional<CudaProduct<T>> product_;
  std::optional<CudaLongSum<T>> long_sum_;
};

// Requests a workspace that each of some products may use.
template <class... Products>
int RequestProductSpace(PrepareContext& context, const Products&... products) {
  return context.RequestWorkspace(std::max({int64_t{0}, products.workspace_bytes()...}));
}

// Sets rows [used, rows) to zeros.
template <typename T>
void ClearRows(const KernelContext& run, T* matrix, int64_t used, int64_t rows, int64_t width) {
  FillBytesOnDevice(run, matrix + used * width, 0, (rows - used) * width * int64_t{sizeof(T)});
}

// Returns `matrix`, or if it has fewer than the most rows, a copy in `space` with zeros after them.
template <typename T>
const T* WithZeroRows(const KernelContext& run, const T* matrix, int64_t used, int64_t rows,
                      int64_t width, const Workspace<T>& space) {
  if (used == rows) return matrix;
  T* copy = space(run);
  CopyOnDevice(run, matrix, copy, used * width * int64_t{sizeof(T)});
  ClearRows(run, copy, used, rows, width);
  return copy;
}

// A block sums this many columns. The warps, its lanes, take the rows in turn; then their sums are
// added, always in the same order.
inline constexpr int kSumColumns = 32;
inline constexpr int kMostSumThreads = 1024;

// Returns the threads of a block for sums of `rows` rows: the more rows, the more lanes.
inline int SumThreads(int64_t rows) {
  int lanes = 2;
  while (lanes < kMostSumThreads / kSumColumns && lanes * 16 < rows) lanes *= 2;
  return lanes * kSumColumns;
}

// Returns to lane 0 the sum of the lanes of its column.
template <typename T>
__device__ T SumLanes(T sum) {
  __shared__ T of_lanes[kMostSumThreads];
  of_lanes[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned threads = blockDim.x / 2; threads >= kSumColumns; threads /= 2) {
    if (threadIdx.x < threads) of_lanes[threadIdx.x] += of_lanes[threadIdx.x + threads];
    __syncthreads();
  }
  return of_lanes[threadIdx.x];
}

// sums[i] = the sum of column i of `rows` rows, `stride` apart.
template <typename T>
__global__ void __launch_bounds__(kMostSumThreads)
    SumColumns(const T* matrix, int64_t rows, int64_t stride, int64_t columns, T* sums) {
  const int64_t lane = threadIdx.x / kSumColumns;
  const int64_t lanes = blockDim.x / kSumColumns;
  const int64_t column = int64_t{blockIdx.x} * kSumColumns + threadIdx.x % kSumColumns;
  T sum = 0;
  if (column < columns) {
#pragma unroll 4
    for (int64_t row = lane; row < rows; row += lanes) sum += matrix[row * stride + column];
  }
  sum = SumLanes(sum);
  if (lane == 0 && column < columns) sums[column] = sum;
}

template <typename T>
void LaunchSumColumns(const KernelContext& run, const T* matrix, int64_t rows, int64_t stride,
                      int64_t columns, T* sums) {
  if (columns == 0) return;
  SumColumns<T><<<static_cast<unsigned>((columns + kSumColumns - 1) / kSumColumns),
                  SumThreads(rows), 0, StreamOf(run)>>>(matrix, rows, stride, columns, sums);
  CheckLaunch("sums of columns");
}

}  // namespace skiff
