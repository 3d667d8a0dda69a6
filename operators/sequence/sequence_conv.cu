// CUDA kernels of sequence_conv; sequence_conv.cc has the formula. The contexts of all rows are
// copied into a matrix for one product with Filter.
#include <algorithm>
#include <memory>

#include "framework/op/registry.h"
#include "operators/sequence/kernels/cuda_sequences.cuh"
#include "operators/sequence/kernels/cuda_steps.cuh"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

struct Contexts {
  explicit Contexts(const OpContext& context)
      : start(context.IntAttr("contextStart")),
        length(context.IntAttr("contextLength")),
        width(context.Input("X").shape[1]),
        rows_before(std::max<int64_t>(0, -start)),
        rows_after(std::max<int64_t>(0, start + length - 1)) {}

  int64_t start;   // of a context, relative to its row
  int64_t length;  // of a context, in rows
  int64_t width;   // of a row of X
  int64_t rows_before;
  int64_t rows_after;

  __host__ __device__ int64_t context_width() const { return length * width; }
};

struct SequenceOfRow {
  int64_t begin;
  int64_t end;

  __device__ SequenceOfRow(const CudaOffsets& sequences, int64_t row) {
    const int64_t i = sequences.SequenceOf(row);
    begin = sequences.Begin(i);
    end = sequences.End(i);
  }
};

// `padding` may be nullptr: zeros.
template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    CopyContexts(Contexts contexts, CudaOffsets sequences, const T* x, const T* padding,
                 int64_t rows, int threads_of_row, T* matrix) {
  const int64_t width = contexts.width;
  ForEachColumn(
      rows, contexts.context_width(), threads_of_row,
      [&](int64_t row) { return SequenceOfRow(sequences, row); },
      [&](int64_t row, int64_t column, const SequenceOfRow& of) {
        const int64_t i = column / width;
        const int64_t at = row + contexts.start + i;
        T value = 0;
        if (at >= of.begin && at < of.end) {
          value = x[at * width + column % width];
        } else if (padding != nullptr) {
          const int64_t padding_row =
              contexts.rows_before + (at < of.begin ? at - of.begin : at - of.end);
          value = padding[padding_row * width + column % width];
        }
        matrix[row * contexts.context_width() + column] = value;
      });
}

// The sum of the gradients of all contexts that contain a row, in their order.
template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    SumContexts(Contexts contexts, CudaOffsets sequences, const T* gradient, int64_t rows,
                int threads_of_row, T* x_gradient) {
  const int64_t width = contexts.width;
  ForEachColumn(
      rows, width, threads_of_row, [&](int64_t row) { return SequenceOfRow(sequences, row); },
      [&](int64_t row, int64_t column, const SequenceOfRow& of) {
        // It is row `row - at - start` of the context of row `at`.
        const int64_t first = row - contexts.start - contexts.length + 1;
        const int64_t last = row - contexts.start + 1;
        T sum = 0;
        for (int64_t at = first < of.begin ? of.begin : first; at < (last < of.end ? last : of.end);
             ++at) {
          sum += gradient[at * contexts.context_width() + (row - at - contexts.start) * width +
                          column];
        }
        x_gradient[row * width + column] = sum;
      });
}

// The sum of the gradients of a row of padding over all sequences.
template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    SumPadding(Contexts contexts, CudaOffsets sequences, const T* gradient, int threads_of_row,
               T* padding_gradient) {
  const int64_t width = contexts.width;
  ForEachColumn(
      contexts.rows_before + contexts.rows_after, width, threads_of_row,
      [&](int64_t row) { return row - contexts.rows_before; },
      [&](int64_t row, int64_t column, int64_t from_end) {
        T sum = 0;
        for (int64_t i = 0; i < sequences.count; ++i) {
          const int64_t begin = sequences.Begin(i);
          const int64_t end = sequences.End(i);
          const int64_t at = from_end < 0 ? begin + from_end : end + from_end;
          for (int64_t k = 0; k < contexts.length; ++k) {
            const int64_t of = at - contexts.start - k;
            if (of >= begin && of < end)
              sum += gradient[of * contexts.context_width() + k * width + column];
          }
        }
        padding_gradient[row * width + column] = sum;
      });
}

// What the kernels of the op and of its gradient have in common.
template <typename T>
class ConvKernel : public Kernel {
 public:
  bool AcceptsFewerRows() const override { return rows_vary_; }

 protected:
  explicit ConvKernel(PrepareContext& context)
      : contexts_(context),
        out_width_(context.Input("Filter").shape[1]),
        most_rows_(context.Input("X").shape[0]),
        rows_vary_(context.rows_vary()),
        level_(SendLevel(context, "X")),
        x_(context, "X"),
        filter_(context, "Filter"),
        trains_padding_(context.Attr<bool>("paddingTrainable")),
        padding_(context, "PaddingData"),
        matrix_(context, most_rows_, contexts_.context_width()),
        // Of as many rows as the products compute or read, where a run has fewer.
        out_rows_(context, rows_vary_ ? most_rows_ : 0, out_width_) {}

  // That a product is made for.
  int64_t fewest_rows() const { return rows_vary_ ? 1024 : most_rows_; }

  T* Copy(const KernelContext& run, const CudaOffsets& sequences, int64_t rows) const {
    T* matrix = matrix_(run);
    if (rows == 0) return matrix;
    const RowThreads threads(rows, contexts_.context_width());
    CopyContexts<T><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(
        contexts_, sequences, x_(run), trains_padding_ ? padding_(run) : nullptr, rows,
        threads.of_row, matrix);
    CheckLaunch("contexts of rows");
    return matrix;
  }

  Contexts contexts_;
  int64_t out_width_;
  int64_t most_rows_;
  bool rows_vary_;
  std::shared_ptr<CudaLevel> level_;
  In<T> x_;
  In<T> filter_;
  bool trains_padding_;
  In<T> padding_;  // read if it is trained
  Workspace<T> matrix_;
  Workspace<T> out_rows_;
};

template <typename T>
class SequenceConvForwardKernel final : public ConvKernel<T> {
 public:
  explicit SequenceConvForwardKernel(PrepareContext& context)
      : ConvKernel<T>(context),
        product_(most_rows_,
                 {.n = this->out_width_,
                  .k = contexts_.context_width(),
                  .lda = contexts_.context_width(),
                  .ldb = this->out_width_,
                  .ldc = this->out_width_},
                 this->fewest_rows()),
        out_(context, "Out"),
        space_(RequestProductSpace(context, product_)) {}

  void Run(const KernelContext& run) override {
    Tensor& out = out_.tensor(run);
    const int64_t rows = out.shape()[0];
    if (rows == 0) return;
    if (contexts_.context_width() == 0)
      return FillBytesOnDevice(run, out.raw_data(), 0, out.byte_count());
    const T* matrix = this->Copy(run, this->level_->Send(run, this->x_.tensor(run)), rows);
    T* to = rows == most_rows_ ? out.template data<T>() : this->out_rows_(run);
    product_.Run(run, rows, matrix, this->filter_(run), false, to, space_);
    CopyOnDevice(run, to, out.raw_data(), out.byte_count());
  }

 private:
  using ConvKernel<T>::contexts_;
  using ConvKernel<T>::most_rows_;
  CudaStepProduct<T> product_;
  Out<T> out_;
  int space_;
};

template <typename T>
class SequenceConvGradKernel final : public ConvKernel<T> {
 public:
  explicit SequenceConvGradKernel(PrepareContext& context)
      : ConvKernel<T>(context),
        x_grad_(context, "X@GRAD"),
        filter_grad_(context, "Filter@GRAD"),
        padding_grad_(context, "PaddingData@GRAD"),
        product_(x_grad_.is_there() || padding_grad_.is_there() ? most_rows_ : 0,
                 {.transpose_b = true,
                  .n = contexts_.context_width(),
                  .k = this->out_width_,
                  .lda = this->out_width_,
                  .ldb = this->out_width_,
                  .ldc = contexts_.context_width()},
                 this->fewest_rows()),
        filter_product_(filter_grad_.is_there() ? most_rows_ : 0, contexts_.context_width(),
                        contexts_.context_width(), this->out_width_, this->out_width_),
        out_grad_(context, "Out@GRAD"),
        space_(RequestProductSpace(context, product_, filter_product_)) {}

  void Run(const KernelContext& run) override {
    const int64_t rows = out_grad_.shape(run)[0];
    const CudaOffsets sequences = this->level_->Send(run, this->x_.tensor(run));
    const T* out_grad =
        WithZeroRows(run, out_grad_(run), rows, most_rows_, this->out_width_, this->out_rows_);
    T* matrix = this->matrix_(run);
    if (this->out_width_ == 0) {
      FillBytesOnDevice(run, matrix, 0, rows * contexts_.context_width() * int64_t{sizeof(T)});
    } else {
      product_.Run(run, rows, out_grad, this->filter_(run), false, matrix, space_);
    }
    if (x_grad_.is_there() && x_grad_.count(run) > 0) {
      const RowThreads threads(rows, contexts_.width);
      SumContexts<T><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(
          contexts_, sequences, matrix, rows, threads.of_row, x_grad_(run));
      CheckLaunch("sequence_conv_grad");
    }
    if (padding_grad_.is_there() && padding_grad_.count(run) > 0) {
      WritePaddingGradient(run, sequences, matrix);
    }
    if (!filter_grad_.is_there()) return;
    this->Copy(run, sequences, rows);
    ClearRows(run, matrix, rows, most_rows_, contexts_.context_width());
    filter_product_.Run(run, matrix, out_grad, filter_grad_(run), space_);
  }

 private:
  void WritePaddingGradient(const KernelContext& run, const CudaOffsets& sequences,
                            const T* matrix) const {
    if (!this->trains_padding_ || !this->padding_.is_there()) {
      return FillBytesOnDevice(run, padding_grad_(run), 0, padding_grad_.tensor(run).byte_count());
    }
    const RowThreads threads(contexts_.rows_before + contexts_.rows_after, contexts_.width);
    SumPadding<T><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(
        contexts_, sequences, matrix, threads.of_row, padding_grad_(run));
    CheckLaunch("sequence_conv_grad: padding");
  }

  using ConvKernel<T>::contexts_;
  using ConvKernel<T>::most_rows_;
  Out<T> x_grad_;
  Out<T> filter_grad_;
  Out<T> padding_grad_;
  CudaStepProduct<T> product_;
  CudaSumProduct<T> filter_product_;
  In<T> out_grad_;
  int space_;
};

template <typename T>
void AddSequenceConvKernels(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "sequence_conv", PrepareKernel<SequenceConvForwardKernel<T>>);
  AddCudaKernel<T>(registry, "sequence_conv_grad", PrepareKernel<SequenceConvGradKernel<T>>);
}

}  // namespace

void RegisterSequenceConvCuda(OpRegistry& registry) {
  AddSequenceConvKernels<float>(registry);
  AddSequenceConvKernels<double>(registry);
}

}  // namespace skiff
