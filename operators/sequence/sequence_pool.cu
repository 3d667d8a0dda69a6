// CUDA kernels of sequence_pool; sequence_pool.cc has the formulas.
#include <cmath>
#include <memory>

#include "framework/op/registry.h"
#include "operators/sequence/kernels/cuda_sequences.cuh"
#include "operators/sequence/kernels/sequence_pooling.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

constexpr int kColumns = 32;  // of a block: a warp's loads are next to each other
constexpr int kLanes = kCudaThreads / kColumns;

// The factor of a sum over `rows` rows.
template <typename T>
__device__ T SumFactor(SequencePooling pooling, int64_t rows) {
  const auto n = static_cast<T>(rows);
  if (pooling == SequencePooling::kAverage) return 1 / n;
  return pooling == SequencePooling::kSqrt ? 1 / std::sqrt(n) : T{1};
}

// A number and the row that it is from; -1: none yet.
template <typename T>
struct Place {
  T value;
  int64_t row;
};

// Returns the larger one; of equal numbers the first. A NaN is the largest.
template <typename T>
__device__ Place<T> LargerOf(const Place<T>& a, const Place<T>& b) {
  if (a.row < 0 || b.row < 0) return a.row < 0 ? b : a;
  const bool a_is_nan = a.value != a.value;
  const bool b_is_nan = b.value != b.value;
  if (a_is_nan != b_is_nan) return a_is_nan ? a : b;
  if (a_is_nan || a.value == b.value) return a.row < b.row ? a : b;
  return a.value > b.value ? a : b;
}

// Block (i, k) computes columns 32k to 32k + 31 of sequence i. Each of its warps takes every eighth
// row; then their results are combined, always in the same order.
template <typename T, class Part>
__device__ Part CombineLanes(Part part, Part* of_lanes, Part (*combine)(const Part&, const Part&)) {
  __syncthreads();  // until all have read what the last call left
  of_lanes[threadIdx.x] = part;
  __syncthreads();
  for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) {
    if (threadIdx.x < lanes * kColumns)
      of_lanes[threadIdx.x] =
          combine(of_lanes[threadIdx.x], of_lanes[threadIdx.x + lanes * kColumns]);
    __syncthreads();
  }
  return of_lanes[threadIdx.x % kColumns];
}

template <typename T>
__device__ T SumOf(const T& a, const T& b) {
  return a + b;
}

template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    PoolSums(SequencePooling pooling, const T* x, CudaOffsets sequences, int64_t width, T pad_value,
             T* out) {
  __shared__ T of_lanes[kCudaThreads];
  const int64_t column = int64_t{blockIdx.y} * kColumns + threadIdx.x % kColumns;
  const int lane = static_cast<int>(threadIdx.x) / kColumns;
  for (int64_t i = blockIdx.x; i < sequences.count; i += gridDim.x) {
    const int64_t begin = sequences.Begin(i);
    const int64_t end = sequences.End(i);
    T sum = 0;
    if (column < width) {
      for (int64_t row = begin + lane; row < end; row += kLanes) sum += x[row * width + column];
    }
    sum = CombineLanes<T>(sum, of_lanes, SumOf<T>);
    if (lane > 0 || column >= width) continue;
    out[i * width + column] = begin == end ? pad_value : sum * SumFactor<T>(pooling, end - begin);
  }
}

// `places` may be nullptr.
template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    PoolMax(const T* x, CudaOffsets sequences, int64_t width, T pad_value, T* out,
            int32_t* places) {
  __shared__ Place<T> of_lanes[kCudaThreads];
  const int64_t column = int64_t{blockIdx.y} * kColumns + threadIdx.x % kColumns;
  const int lane = static_cast<int>(threadIdx.x) / kColumns;
  for (int64_t i = blockIdx.x; i < sequences.count; i += gridDim.x) {
    const int64_t begin = sequences.Begin(i);
    const int64_t end = sequences.End(i);
    Place<T> largest = {pad_value, -1};
    if (column < width) {
      for (int64_t row = begin + lane; row < end; row += kLanes)
        largest = LargerOf(largest, Place<T>{x[row * width + column], row});
    }
    largest = CombineLanes<T>(largest, of_lanes, LargerOf<T>);
    if (lane > 0 || column >= width) continue;
    out[i * width + column] = largest.value;
    if (places != nullptr) places[i * width + column] = static_cast<int32_t>(largest.row);
  }
}

// The first or last row of each sequence.
template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    PoolOneRow(bool is_first, const T* x, CudaOffsets sequences, int64_t width, T pad_value,
               int threads_of_row, T* out) {
  ForEachColumn(
      sequences.count, width, threads_of_row,
      [&](int64_t i) {
        const int64_t begin = sequences.Begin(i);
        const int64_t end = sequences.End(i);
        return begin == end ? int64_t{-1} : is_first ? begin : end - 1;
      },
      [&](int64_t i, int64_t column, int64_t row) {
        out[i * width + column] = row < 0 ? pad_value : x[row * width + column];
      });
}

template <typename T>
std::unique_ptr<Kernel> PrepareSequencePool(PrepareContext& context) {
  return MakeRowsKernel([pooling = PoolingOf(context), width = RowWidth(context, "X"),
                         pad_value = static_cast<T>(context.Attr<float>("pad_value")),
                         level = SendLevel(context, "X"), x = In<T>(context, "X"),
                         out = Out<T>(context, "Out"),
                         max_index = Out<int32_t>(context, "MaxIndex")](const KernelContext& run) {
    if (out.count(run) == 0) return;
    const CudaOffsets sequences = level->Send(run, x.tensor(run));
    const T* from = x(run);
    T* to = out(run);
    const dim3 blocks(static_cast<unsigned>(CudaBlocks(sequences.count)),
                      static_cast<unsigned>((width + kColumns - 1) / kColumns));
    const cudaStream_t stream = StreamOf(run);
    switch (pooling) {
      case SequencePooling::kMax:
        PoolMax<T><<<blocks, kCudaThreads, 0, stream>>>(from, sequences, width, pad_value, to,
                                                        max_index(run));
        break;
      case SequencePooling::kFirst:
      case SequencePooling::kLast: {
        const RowThreads threads(sequences.count, width);
        PoolOneRow<T><<<threads.blocks, kCudaThreads, 0, stream>>>(
            pooling == SequencePooling::kFirst, from, sequences, width, pad_value, threads.of_row,
            to);
        break;
      }
      default:
        PoolSums<T>
            <<<blocks, kCudaThreads, 0, stream>>>(pooling, from, sequences, width, pad_value, to);
    }
    CheckLaunch("sequence_pool");
  });
}

// What all threads of a row must know of its sequence.
struct RowOfSequence {
  int64_t sequence;
  int64_t begin;
  int64_t end;
};

// `places` is nullptr but for MAX.
template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    PoolGradient(SequencePooling pooling, const T* gradient, const int32_t* places,
                 CudaOffsets sequences, int64_t rows, int64_t width, int threads_of_row,
                 uint64_t* fault, T* x_gradient) {
  ForEachColumn(
      rows, width, threads_of_row,
      [&](int64_t row) {
        const int64_t i = sequences.SequenceOf(row);
        return RowOfSequence{i, sequences.Begin(i), sequences.End(i)};
      },
      [&](int64_t row, int64_t column, const RowOfSequence& of) {
        const int64_t at = of.sequence * width + column;
        bool is_taken = true;
        if (pooling == SequencePooling::kMax) {
          const int64_t place = places[at];
          if (row == of.begin && (place < of.begin || place >= of.end)) NoteFault(fault, at, place);
          is_taken = place == row;
        }
        if (pooling == SequencePooling::kFirst) is_taken = row == of.begin;
        if (pooling == SequencePooling::kLast) is_taken = row == of.end - 1;
        x_gradient[row * width + column] =
            is_taken ? gradient[at] * SumFactor<T>(pooling, of.end - of.begin) : T{0};
      });
}

template <typename T>
class SequencePoolGradKernel final : public Kernel {
 public:
  explicit SequencePoolGradKernel(PrepareContext& context)
      : pooling_(PoolingOf(context)),
        width_(RowWidth(context, "X")),
        level_(SendLevel(context, "X")),
        x_(context, "X"),
        max_index_(context, "MaxIndex"),
        out_grad_(context, "Out@GRAD"),
        x_grad_(context, "X@GRAD") {}

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const int64_t rows = x_grad_.shape(run)[0];
    if (rows == 0) return;
    const CudaOffsets sequences = level_->Send(run, x_.tensor(run));
    const RowThreads threads(rows, width_);
    PoolGradient<T><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(
        pooling_, out_grad_(run), pooling_ == SequencePooling::kMax ? max_index_(run) : nullptr,
        sequences, rows, width_, threads.of_row, run.fault, x_grad_(run));
    CheckLaunch("sequence_pool_grad");
  }

  void ThrowFault(const DataFault& fault) const override {
    const int64_t i = fault.position / width_;
    Throw(ErrorCode::kOutOfRange, "sequence_pool_grad: MaxIndex[", fault.position, "] is ",
          fault.value, ", expected a row of its sequence, ", level_->Sent(i), " to ",
          level_->Sent(i + 1) - 1);
  }

 private:
  SequencePooling pooling_;
  int64_t width_;
  std::shared_ptr<CudaLevel> level_;
  In<> x_;
  In<int32_t> max_index_;
  In<T> out_grad_;
  Out<T> x_grad_;
};

template <typename T>
void AddSequencePoolKernels(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "sequence_pool", PrepareSequencePool<T>);
  AddCudaKernel<T>(registry, "sequence_pool_grad", PrepareKernel<SequencePoolGradKernel<T>>);
}

}  // namespace

void RegisterSequencePoolCuda(OpRegistry& registry) {
  AddSequencePoolKernels<float>(registry);
  AddSequencePoolKernels<double>(registry);
}

}  // namespace skiff
