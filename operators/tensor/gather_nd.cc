// gather_nd: Out[i, ...] = X[Index[i, 0], …, Index[i, k - 1], ...].
//
// Source: Fluid's gather_nd. The last dim of Index is k, at most the rank of X. The other dims
// count tuples and become the first dims of Out. k = 0 repeats X. Gradient: each row of X@GRAD is
// the sum of the rows of Out@GRAD whose tuples name it, in the order of the tuples.
#include "framework/op/grad.h"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/index_rows.h"
#include "operators/tensor/kernels/strided_copy.h"

namespace skiff {
namespace {

Shape OutShape(const OpContext& context) {
  CheckIndexDType(context, "Index");
  return ShapeOfTupleRows(context.Input("X").shape, context.Input("Index").shape,
                          context.op().type);
}

std::unique_ptr<Kernel> PrepareGatherNd(PrepareContext& context) {
  const RowsByTuple prepared(context.Input("X").shape, context.Input("Index").shape, "gather_nd");
  return MakeRowsKernel([numbers = context.RequestWorkspace(prepared.count() * 8),
                         bytes = SizeOf(context.Input("X").dtype), x = In<>(context, "X"),
                         index = In<>(context, "Index"),
                         out = Out<>(context, "Out")](const KernelContext& run) {
    const RowsByTuple rows(x.shape(run), index.shape(run), "gather_nd");
    auto* row = static_cast<int64_t*>(run.workspace(numbers));
    // Checks all tuples first: afterwards it is a gather along one axis.
    rows.Resolve(index.tensor(run), "gather_nd", row);
    TakeRows(rows.axis(), x(run), row, rows.count(), bytes, out(run));
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGatherNdGrad(PrepareContext& context) {
  const RowsByTuple prepared(context.Input("X").shape, context.Input("Index").shape,
                             "gather_nd_grad");
  return MakeRowsKernel([numbers = context.RequestWorkspace(prepared.count() * 8),
                         index = In<>(context, "Index"), grad = In<T>(context, "Out@GRAD"),
                         out = Out<T>(context, "X@GRAD")](const KernelContext& run) {
    Tensor& x_grad = out.tensor(run);
    const RowsByTuple rows(x_grad.shape(), index.shape(run), "gather_nd_grad");
    auto* row = static_cast<int64_t*>(run.workspace(numbers));
    rows.Resolve(index.tensor(run), "gather_nd_grad", row);
    ZeroBytes(x_grad.raw_data(), x_grad.byte_count());
    AddRows(rows.axis(), grad(run), row, rows.count(), out(run));
  });
}

}  // namespace

void RegisterGatherNd(OpRegistry& registry) {
  OpDef def;
  def.type = "gather_nd";
  def.doc = "Out[i, ...] = X[Index[i, 0], …, Index[i, k - 1], ...].";
  def.inputs = {{.name = "X", .doc = "Any tensor."},
                {.name = "Index",
                 .doc = "int32 or int64, [..., k]: tuples of k indices.",
                 .checks_data = true}};
  def.outputs = {
      {.name = "Out", .doc = "The dims of Index except the last, then those of X from k on."}};
  def.infer = [](OpContext& context) {
    context.SetOutput("Out", OutShape(context), context.Input("X").dtype);
  };
  def.precision = Precision::kFollow;
  def.kernel_dtype_slot = "X";
  OpDef grad = GradientOf(&def, {ForShape("X"), "Index", "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "Each row of X@GRAD = the sum of the rows of Out@GRAD whose tuples name it.";
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "gather_nd", PrepareGatherNd);
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "gather_nd_grad",
      []<typename T>(PrepareContext& context) { return PrepareGatherNdGrad<T>(context); });
}

}  // namespace skiff
