// row_conv: each row plus what follows it, in columns of their own (lookahead convolution).
//
//   Out[r, c] = sum of X[r + i, c] * Filter[i, c] over i, as long as r + i is in r's sequence
//
// X is ragged, or a batch [batch, rows, width] of sequences. Source: Fluid's row_conv (Wang et al.,
// "Lookahead convolution layer for unidirectional recurrent neural networks", 2016).
//
// Gradient: X@GRAD[r, c] = sum of Out@GRAD[r - i, c] * Filter[i, c]; Filter@GRAD[i, c] = sum of
// X[r + i, c] * Out@GRAD[r, c] over all r.
#include <algorithm>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

// Checks X and Filter.
void CheckArguments(const OpContext& context) {
  const TensorMeta& x = context.Input("X");
  const bool is_ragged = x.lod_level > 0;
  SKIFF_ENFORCE(x.shape.rank() == (is_ragged ? 2 : 3), kInvalidArgument, context.op().type,
                ": X has shape ", x.shape, " and ", x.lod_level,
                " LoD levels, expected ragged [rows, width] or [batch, rows, width]");
  if (is_ragged) OneLevelSequenceCount(context, "X");
  const Shape& filter = context.Input("Filter").shape;
  SKIFF_ENFORCE(filter.rank() == 2, kInvalidArgument, context.op().type, ": Filter has shape ",
                filter, ", expected a matrix");
  CheckInputLike(context, "Filter", {filter[0], x.shape[x.shape.rank() - 1]}, x.dtype);
}

void Infer(OpContext& context) {
  CheckArguments(context);
  context.SetOutputLike("Out", "X");
}

// The sequences of X, ragged or not.
class Sequences {
 public:
  explicit Sequences(const Tensor& x) : x_(x) {}

  int64_t size() const { return is_ragged() ? SequenceRows(x_).size() : x_.shape()[0]; }
  RowRange operator[](int64_t i) const {
    if (is_ragged()) return SequenceRows(x_)[i];
    const int64_t rows = x_.shape()[1];
    return {i * rows, (i + 1) * rows};
  }

 private:
  bool is_ragged() const { return !x_.lod().empty(); }

  const Tensor& x_;
};

struct FilterSizes {
  int64_t context = 0;
  int64_t width = 0;
};

FilterSizes SizesOf(const Tensor& filter) { return {filter.shape()[0], filter.shape()[1]}; }

// Adds a * b.
template <typename T>
void AddProducts(const T* a, const T* b, int64_t count, T* sum) {
  for (int64_t i = 0; i < count; ++i) sum[i] += a[i] * b[i];
}

// Sets each row of `to` to the sum of the rows `from` at the distances 0, 1, … in `direction`,
// times the rows of the filter.
template <typename T>
void Convolve(const Tensor& x, const FilterSizes& sizes, int64_t direction, const T* from,
              const T* filter, T* to) {
  const Sequences sequences(x);
  const int64_t grain = SequenceGrain(sequences.size(), x.element_count() * sizes.context);
  ParallelFor(sequences.size(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const RowRange rows = sequences[i];
      for (int64_t row = rows.begin; row < rows.end; ++row) {
        T* sum = to + row * sizes.width;
        std::fill_n(sum, sizes.width, T{0});
        const int64_t there = direction > 0 ? rows.end - row : row - rows.begin + 1;
        for (int64_t k = 0; k < std::min(sizes.context, there); ++k) {
          AddProducts(from + (row + direction * k) * sizes.width, filter + k * sizes.width,
                      sizes.width, sum);
        }
      }
    }
  });
}

// Each thread sums rows of the filter: over the data in order, whatever the number of threads.
template <typename T>
void FilterGradient(const Tensor& x, const FilterSizes& sizes, const T* gradient, T* to) {
  const Sequences sequences(x);
  const T* from = x.data<T>();
  ParallelFor(sizes.context, SequenceGrain(1, x.element_count()), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      T* sum = to + k * sizes.width;
      std::fill_n(sum, sizes.width, T{0});
      for (int64_t i = 0; i < sequences.size(); ++i) {
        const RowRange rows = sequences[i];
        for (int64_t row = rows.begin; row + k < rows.end; ++row) {
          AddProducts(from + (row + k) * sizes.width, gradient + row * sizes.width, sizes.width,
                      sum);
        }
      }
    }
  });
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeRowsKernel([x = In<T>(context, "X"), filter = In<T>(context, "Filter"),
                         out = Out<T>(context, "Out")](const KernelContext& run) {
    const FilterSizes sizes = SizesOf(filter.tensor(run));
    Convolve(x.tensor(run), sizes, 1, x(run), filter(run), out(run));
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  return MakeRowsKernel([x = In<>(context, "X"), filter = In<T>(context, "Filter"),
                         out_grad = In<T>(context, "Out@GRAD"), x_grad = Out<T>(context, "X@GRAD"),
                         filter_grad = Out<T>(context, "Filter@GRAD")](const KernelContext& run) {
    const FilterSizes sizes = SizesOf(filter.tensor(run));
    const T* gradient = out_grad(run);
    if (x_grad.is_there()) Convolve(x.tensor(run), sizes, -1, gradient, filter(run), x_grad(run));
    if (filter_grad.is_there()) FilterGradient(x.tensor(run), sizes, gradient, filter_grad(run));
  });
}

}  // namespace

void RegisterRowConv(OpRegistry& registry) {
  OpDef def;
  def.type = "row_conv";
  def.doc = "The sum of each row and those after it in its sequence, times the rows of Filter.";
  def.inputs = {{.name = "X", .doc = "Ragged [rows, width], or [batch, rows, width]."},
                {.name = "Filter", .doc = "[context, width]; row 0 is for the row itself."}};
  def.outputs = {{.name = "Out", .doc = "Like X."}};
  def.infer = Infer;
  def.precision = Precision::kLow;
  OpDef grad = GradientOf(&def, {"X", "Filter", "Out@GRAD"}, {"X@GRAD", "Filter@GRAD"});
  grad.doc = "The gradients of X and Filter.";
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      "row_conv", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "row_conv_grad", []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
