// scatter_nd_add: Out = X, and Out[Index[i, 0], …, Index[i, k - 1], ...] += Updates[i, ...].
//
// Source: Fluid's scatter_nd_add, the reverse of gather_nd (with zeros as X, its gradient). Updates
// of one row are added in the order of i. Gradient: X@GRAD = Out@GRAD and Updates@GRAD =
// gather_nd(Out@GRAD, Index).
#include "framework/op/grad.h"
#include "operators/common/input_checks.h"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/index_rows.h"
#include "operators/tensor/kernels/strided_copy.h"

namespace skiff {
namespace {

// Throws Error unless Updates fits the rows of `rows_slot`, which is X or has its shape.
void CheckUpdates(const OpContext& context, const std::string& rows_slot) {
  CheckIndexDType(context, "Index");
  const TensorMeta& x = context.Input(rows_slot);
  const Shape& index = context.Input("Index").shape;
  // With tuples of unknown length, the shape of Updates is known only when the op runs.
  if (index.rank() >= 1 && index[index.rank() - 1] < 0) return;
  CheckInputLike(context, "Updates", ShapeOfTupleRows(x.shape, index, context.op().type), x.dtype);
}

void InferScatterNdAdd(OpContext& context) {
  CheckUpdates(context, "X");
  context.SetOutputLike("Out", "X");
}

void InferScatterNdAddGrad(OpContext& context) {
  CheckUpdates(context, "Out@GRAD");
  context.SetOutputLike("X@GRAD", "Out@GRAD");
  context.SetOutputLike("Updates@GRAD", "Updates");
}

template <typename T>
std::unique_ptr<Kernel> PrepareScatterNdAdd(PrepareContext& context) {
  CheckUpdates(context, "X");
  const RowsByTuple rows(context.Input("X").shape, context.Input("Index").shape, "scatter_nd_add");
  return MakeKernel([rows, numbers = context.RequestWorkspace(rows.count() * 8),
                     x = In<>(context, "X"), index = In<>(context, "Index"),
                     updates = In<T>(context, "Updates"),
                     out = Out<T>(context, "Out")](const KernelContext& run) {
    auto* row = static_cast<int64_t*>(run.workspace(numbers));
    // Before anything is written: in place, an Error leaves X as it was.
    rows.Resolve(index.tensor(run), "scatter_nd_add", row);
    Tensor& result = out.tensor(run);
    CopyBytes(x(run), result.raw_data(), result.byte_count());
    AddRows(rows.axis(), updates(run), row, rows.count(), out(run));
  });
}

std::unique_ptr<Kernel> PrepareScatterNdAddGrad(PrepareContext& context) {
  const RowsByTuple rows(context.Input("Out@GRAD").shape, context.Input("Index").shape,
                         "scatter_nd_add_grad");
  return MakeKernel([rows, numbers = context.RequestWorkspace(rows.count() * 8),
                     bytes = SizeOf(context.Input("Out@GRAD").dtype),
                     index = In<>(context, "Index"), grad = In<>(context, "Out@GRAD"),
                     x = Out<>(context, "X@GRAD"),
                     updates = Out<>(context, "Updates@GRAD")](const KernelContext& run) {
    if (updates.is_there()) {
      auto* row = static_cast<int64_t*>(run.workspace(numbers));
      rows.Resolve(index.tensor(run), "scatter_nd_add_grad", row);
      TakeRows(rows.axis(), grad(run), row, rows.count(), bytes, updates(run));
    }
    if (x.is_there()) CopyBytes(grad(run), x(run), grad.tensor(run).byte_count());
  });
}

}  // namespace

void RegisterScatterNdAdd(OpRegistry& registry) {
  OpDef def;
  def.type = "scatter_nd_add";
  def.doc = "Out = X, and Out[Index[i, 0], …, Index[i, k - 1], ...] += Updates[i, ...].";
  def.inputs = {
      {.name = "X", .doc = "Any tensor."},
      {.name = "Index",
       .doc = "int32 or int64, [..., k]: tuples of k indices.",
       .checks_data = true},
      {.name = "Updates",
       .doc = "Like Out of gather_nd: Index dims except the last, then X dims from k on."}};
  def.outputs = {{.name = "Out", .doc = "Of X's shape."}};
  def.infer = InferScatterNdAdd;
  def.precision = Precision::kFollow;
  def.kernel_dtype_slot = "X";
  def.in_place = {{"X", "Out"}};
  OpDef grad =
      GradientOf(&def, {"Index", ForShape("Updates"), "Out@GRAD"}, {"X@GRAD", "Updates@GRAD"});
  grad.doc = "X@GRAD = Out@GRAD; Updates@GRAD[i, ...] = Out@GRAD[Index[i, 0], …, ...].";
  grad.infer = InferScatterNdAddGrad;
  // Nothing ties the dims of Out@GRAD to those of the X that scatter_nd_add had.
  grad.data_checked_by = {};
  grad.in_place = {{"Out@GRAD", "X@GRAD"}};
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "scatter_nd_add",
      []<typename T>(PrepareContext& context) { return PrepareScatterNdAdd<T>(context); });
  registry.Add(std::move(grad));
  AddKernelsForAllDTypes(registry, "scatter_nd_add_grad", PrepareScatterNdAddGrad);
}

}  // namespace skiff
