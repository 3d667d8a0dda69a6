// diag_v2: turns a vector into the matrix that has it on a diagonal and padding_value elsewhere,
// and a matrix into the vector of a diagonal.
//
//   vector: Out[i, i + offset] = X[i] (Out[i - offset, i] for a negative offset)
//   matrix: Out[i] = X[i, i + offset] (X[i - offset, i])
//
// Source: Fluid's diag_v2. A scalar counts as a vector of one element. The gradient takes the same
// elements of Out@GRAD; if X is a matrix, X@GRAD is 0 elsewhere.
#include <algorithm>
#include <cstdlib>

#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/fill.h"
#include "operators/tensor/kernels/strided_copy.h"

namespace skiff {
namespace {

Shape DiagonalShape(const OpContext& context) {
  const Shape& x = context.Input("X").shape;
  const int64_t offset = context.IntAttr("offset");
  SKIFF_ENFORCE(x.rank() <= 2, kInvalidArgument, context.op().type, ": X has shape ", x,
                ", expected a vector or a matrix");
  if (x.rank() < 2) {
    const int64_t length = x.rank() == 0 ? 1 : x[0];
    const int64_t side = length < 0 ? -1 : length + std::abs(offset);
    return {side, side};
  }
  if (!x.is_known()) return {-1};
  const int64_t length = offset < 0 ? std::min(x[0] + offset, x[1]) : std::min(x[0], x[1] - offset);
  SKIFF_ENFORCE(length >= 0, kOutOfRange, context.op().type, ": offset = ", offset,
                " is outside X of shape ", x);
  return {length};
}

// The elements of a diagonal in a row-major matrix: first, first + step, …
struct Diagonal {
  int64_t first = 0;
  int64_t step = 0;
  int64_t count = 0;
};

Diagonal DiagonalOf(int64_t offset, int64_t columns, int64_t count) {
  return {offset < 0 ? -offset * columns : offset, columns + 1, count};
}

// Returns the diagonal in X or Out, whichever is the matrix.
Diagonal DiagonalOf(const OpContext& context) {
  const Shape& x = context.Input("X").shape;
  const int64_t offset = context.IntAttr("offset");
  const Shape result = DiagonalShape(context);
  if (x.rank() == 2) return DiagonalOf(offset, x[1], result[0]);
  return DiagonalOf(offset, result[1], x.element_count());
}

FillValue PaddingOf(const OpContext& context) {
  return {.real = context.Attr<float>("padding_value")};
}

template <typename T>
void TakeDiagonal(const Diagonal& diagonal, const T* matrix, T* vector) {
  for (int64_t i = 0; i < diagonal.count; ++i) {
    vector[i] = matrix[diagonal.first + i * diagonal.step];
  }
}

template <typename T>
void PutDiagonal(const Diagonal& diagonal, const T* vector, T* matrix) {
  for (int64_t i = 0; i < diagonal.count; ++i) {
    matrix[diagonal.first + i * diagonal.step] = vector[i];
  }
}

template <typename T>
std::unique_ptr<Kernel> PrepareDiag(PrepareContext& context) {
  const bool of_matrix = context.Input("X").shape.rank() == 2;
  return MakeKernel([diagonal = DiagonalOf(context), of_matrix, padding = PaddingOf(context),
                     x = In<T>(context, "X"),
                     out = Out<T>(context, "Out")](const KernelContext& run) {
    const T* from = x(run);
    T* to = out(run);
    if (of_matrix) return TakeDiagonal(diagonal, from, to);
    FillTensor(padding, &out.tensor(run));
    PutDiagonal(diagonal, from, to);
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareDiagGrad(PrepareContext& context) {
  return MakeKernel([diagonal = DiagonalOf(context),
                     of_matrix = context.Input("X").shape.rank() == 2,
                     grad = In<T>(context, "Out@GRAD"),
                     out = Out<T>(context, "X@GRAD")](const KernelContext& run) {
    const T* from = grad(run);
    T* to = out(run);
    if (!of_matrix) return TakeDiagonal(diagonal, from, to);
    ZeroBytes(to, out.tensor(run).byte_count());
    PutDiagonal(diagonal, from, to);
  });
}

}  // namespace

void RegisterDiagV2(OpRegistry& registry) {
  OpDef def;
  def.type = "diag_v2";
  def.doc = "Of a vector the matrix with it on diagonal `offset`; of a matrix that diagonal.";
  def.inputs = {{.name = "X", .doc = "A vector (or scalar) or a matrix."}};
  def.outputs = {{.name = "Out", .doc = "A square matrix, or a vector."}};
  def.attrs = {
      {.name = "offset",
       .type = AttrType::kInt,
       .default_value = int32_t{0},
       .doc = "Which diagonal: columns to the right of the main one, negative to the left."},
      {.name = "padding_value",
       .type = AttrType::kFloat,
       .default_value = 0.0f,
       .doc = "The other elements of the matrix that a vector gives."}};
  def.infer = [](OpContext& context) {
    const TensorMeta& x = context.Input("X");
    if (x.shape.rank() < 2) CheckFillValue(PaddingOf(context), x.dtype, "diag_v2: padding_value");
    context.SetOutput("Out", DiagonalShape(context), x.dtype);
  };
  def.precision = Precision::kFollow;
  OpDef grad = GradientOf(&def, {ForShape("X"), "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "X@GRAD = the elements of Out@GRAD that came from X; 0 off the diagonal of a matrix.";
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "diag_v2", []<typename T>(PrepareContext& context) { return PrepareDiag<T>(context); });
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "diag_v2_grad",
      []<typename T>(PrepareContext& context) { return PrepareDiagGrad<T>(context); });
}

}  // namespace skiff
