// dot: Out = the sum of X * Y along the last dim; X and Y are vectors, or batches of them.
// Source: Fluid's dot; dX = dOut * Y, dY = dOut * X.
#include <algorithm>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/array_reduction.h"

namespace skiff {
namespace {

constexpr int64_t kGrainElements = 16384;

// X as rows; -1 is unknown.
struct Rows {
  Shape batch;
  int64_t size = 0;

  int64_t grain() const {
    return std::max<int64_t>(1, kGrainElements / std::max<int64_t>(size, 1));
  }
};

Rows RowsOf(const Shape& shape) {
  const int last = shape.rank() - 1;
  return {.batch = Shape(shape.dims().first(static_cast<size_t>(last))), .size = shape[last]};
}

Rows RowsOf(const OpContext& context) {
  const TensorMeta& x = context.Input("X");
  const TensorMeta& y = context.Input("Y");
  const std::string& type = context.op().type;
  SKIFF_ENFORCE(x.dtype == y.dtype, kInvalidArgument, type, ": X is ", x.dtype, ", Y is ", y.dtype,
                ", expected one dtype");
  const int rank = x.shape.rank();
  SKIFF_ENFORCE((rank == 1 || rank == 2) && y.shape.rank() == rank, kInvalidArgument, type, ": X ",
                x.shape, " and Y ", y.shape, ", expected one shape, of rank 1 or 2");
  Shape shape = x.shape;
  for (int axis = 0; axis < rank; ++axis) {
    shape[axis] =
        MergeDims(x.shape[axis], y.shape[axis], StrCat(type, ": dim ", axis, " of X and Y"));
  }
  return RowsOf(shape);
}

void Infer(OpContext& context) {
  const Rows rows = RowsOf(context);
  if (rows.batch.rank() > 0) context.SetOutputLike("Out", "X");
  context.SetOutput("Out", rows.batch, context.Input("X").dtype);
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const In<T> x_input(context, "X");
  const In<T> y_input(context, "Y");
  const Out<T> output(context, "Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const Rows rows = RowsOf(x_input.shape(run));
    const T* x = x_input(run);
    const T* y = y_input(run);
    T* out = output(run);
    // Rows are shared among threads. SumOfProducts is threaded only outside of them, for a single
    // long row.
    ParallelFor(rows.batch.element_count(), rows.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        out[row] =
            static_cast<T>(SumOfProducts(x + row * rows.size, y + row * rows.size, rows.size));
      }
    });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const In<T> x_input(context, "X");
  const In<T> y_input(context, "Y");
  const In<T> gradient_input(context, "Out@GRAD");
  const Out<T> dx_output(context, "X@GRAD");
  const Out<T> dy_output(context, "Y@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const Rows rows = RowsOf(x_input.shape(run));
    const T* gradient = gradient_input(run);
    const auto scale_rows = [&](const In<T>& input, const Out<T>& output) {
      if (!output.is_there()) return;
      const T* from = input(run);
      T* to = output(run);
      ParallelFor(rows.batch.element_count(), rows.grain(), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          ScaleArray(from + row * rows.size, gradient[row], to + row * rows.size, rows.size);
        }
      });
    };
    scale_rows(y_input, dx_output);
    scale_rows(x_input, dy_output);
  });
}

}  // namespace

void RegisterDot(OpRegistry& registry) {
  OpDef def = {.type = "dot",
               .doc = "Out = the sum of X * Y along the last dim. Fluid's dot.",
               .inputs = {{.name = "X", .doc = "A vector, or rows of a matrix."},
                          {.name = "Y", .doc = "Of X's shape."}},
               .outputs = {{.name = "Out", .doc = "A scalar, or one value per row."}},
               .infer = Infer};
  def.precision = Precision::kHigh;
  OpDef grad = GradientOf(&def, {"X", "Y", "Out@GRAD"}, {"X@GRAD", "Y@GRAD"});
  grad.doc = "The gradient of dot: dX = dOut * Y, dY = dOut * X.";
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "dot", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "dot_grad", []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
