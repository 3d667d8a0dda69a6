// CUDA kernels of row_conv; row_conv.cc has the formulas.
#include <memory>

#include "framework/op/registry.h"
#include "operators/sequence/kernels/cuda_sequences.cuh"
#include "operators/sequence/kernels/cuda_steps.cuh"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

// The sequences of X, ragged or all of `rows` rows.
struct Sequences {
  CudaOffsets ragged;
  int64_t rows;  // 0: ragged

  __device__ int64_t Begin(int64_t row) const {
    return rows > 0 ? row / rows * rows : ragged.Begin(ragged.SequenceOf(row));
  }
  __device__ int64_t End(int64_t row) const {
    return rows > 0 ? (row / rows + 1) * rows : ragged.End(ragged.SequenceOf(row));
  }
};

// Sets each row of `to` to the sum of the rows `from` at the distances 0, 1, … in `direction`,
// times the rows of the filter.
template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    ConvolveRows(Sequences sequences, int64_t direction, const T* from, const T* filter,
                 int64_t rows, int64_t width, int64_t context, int threads_of_row, T* to) {
  ForEachColumn(
      rows, width, threads_of_row,
      [&](int64_t row) {
        const int64_t there =
            direction > 0 ? sequences.End(row) - row : row - sequences.Begin(row) + 1;
        return there < context ? there : context;
      },
      [&](int64_t row, int64_t column, int64_t count) {
        T sum = 0;
        for (int64_t k = 0; k < count; ++k)
          sum += from[(row + direction * k) * width + column] * filter[k * width + column];
        to[row * width + column] = sum;
      });
}

// Block (i, k) sums 32 columns of row k of the filter, always in the same order.
template <typename T>
__global__ void __launch_bounds__(kMostSumThreads)
    FilterGradient(Sequences sequences, const T* x, const T* gradient, int64_t rows, int64_t width,
                   T* to) {
  const int64_t lane = threadIdx.x / kSumColumns;
  const int64_t lanes = blockDim.x / kSumColumns;
  const int64_t column = int64_t{blockIdx.x} * kSumColumns + threadIdx.x % kSumColumns;
  const int64_t k = blockIdx.y;
  T sum = 0;
  if (column < width) {
    for (int64_t row = lane; row < rows; row += lanes) {
      if (row + k < sequences.End(row))
        sum += x[(row + k) * width + column] * gradient[row * width + column];
    }
  }
  sum = SumLanes(sum);
  if (lane == 0 && column < width) to[k * width + column] = sum;
}

// What the kernels of the op and of its gradient have in common.
template <typename T>
class RowConvolution {
 public:
  explicit RowConvolution(const PrepareContext& context)
      : width_(context.Input("Filter").shape[1]), x_(context, "X"), filter_(context, "Filter") {
    if (context.Input("X").lod_level > 0) level_ = SendLevel(context, "X");
  }

  // The rows of Filter may be fewer than it was prepared for, too.
  int64_t ContextRows(const KernelContext& run) const { return filter_.shape(run)[0]; }
  int64_t Rows(const KernelContext& run) const {
    const Shape& x = x_.shape(run);
    return x.element_count(0, x.rank() - 1);
  }
  Sequences Send(const KernelContext& run) const {
    if (level_ != nullptr) return {level_->Send(run, x_.tensor(run)), 0};
    return {{}, x_.shape(run)[1]};
  }

  void Convolve(const KernelContext& run, int64_t direction, const T* from, T* to) const {
    const int64_t rows = Rows(run);
    if (rows == 0 || width_ == 0) return;
    const RowThreads threads(rows, width_);
    ConvolveRows<T><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(
        Send(run), direction, from, filter_(run), rows, width_, ContextRows(run), threads.of_row,
        to);
    CheckLaunch("row_conv");
  }

  void Sum(const KernelContext& run, const T* gradient, T* to) const {
    const int64_t rows = Rows(run);
    const int64_t context = ContextRows(run);
    if (width_ == 0 || context == 0) return;
    if (rows == 0) return FillBytesOnDevice(run, to, 0, context * width_ * int64_t{sizeof(T)});
    const dim3 blocks(static_cast<unsigned>((width_ + kSumColumns - 1) / kSumColumns),
                      static_cast<unsigned>(context));
    FilterGradient<T><<<blocks, SumThreads(rows), 0, StreamOf(run)>>>(Send(run), x_(run), gradient,
                                                                      rows, width_, to);
    CheckLaunch("row_conv_grad");
  }

 private:
  int64_t width_;
  In<T> x_;
  In<T> filter_;
  std::shared_ptr<CudaLevel> level_;
};

template <typename T>
std::unique_ptr<Kernel> PrepareRowConv(PrepareContext& context) {
  return MakeRowsKernel([convolution = RowConvolution<T>(context), x = In<T>(context, "X"),
                         out = Out<T>(context, "Out")](const KernelContext& run) {
    convolution.Convolve(run, 1, x(run), out(run));
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareRowConvGrad(PrepareContext& context) {
  return MakeRowsKernel([convolution = RowConvolution<T>(context),
                         out_grad = In<T>(context, "Out@GRAD"), x_grad = Out<T>(context, "X@GRAD"),
                         filter_grad = Out<T>(context, "Filter@GRAD")](const KernelContext& run) {
    if (x_grad.is_there()) convolution.Convolve(run, -1, out_grad(run), x_grad(run));
    if (filter_grad.is_there()) convolution.Sum(run, out_grad(run), filter_grad(run));
  });
}

template <typename T>
void AddRowConvKernels(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "row_conv", PrepareRowConv<T>);
  AddCudaKernel<T>(registry, "row_conv_grad", PrepareRowConvGrad<T>);
}

}  // namespace

void RegisterRowConvCuda(OpRegistry& registry) {
  AddRowConvKernels<float>(registry);
  AddRowConvKernels<double>(registry);
}

}  // namespace skiff
