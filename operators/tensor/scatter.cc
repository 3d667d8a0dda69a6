// scatter: Out = X with the rows Ids[i] replaced by Updates[i] (`overwrite`), or by the sum of the
// Updates[i] that name them.
//
// Source: Fluid's scatter. With `overwrite`, if an id occurs twice, the last update counts. Without
// it, a row that is named starts from zero, not from X. Ids is [m], [m, 1] or a scalar; with a
// scalar, Updates is one row.
//
// Gradient: X@GRAD = Out@GRAD with zeros in the rows that are named; Updates@GRAD[i] =
// Out@GRAD[Ids[i]]. An update that a later one overwrote gets zeros; Fluid gives it the gradient of
// the row as if it had reached Out.
#include "framework/op/grad.h"
#include "operators/common/input_checks.h"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/index_rows.h"
#include "operators/tensor/kernels/strided_copy.h"

namespace skiff {
namespace {

void CheckScatter(const OpContext& context, const TensorMeta& x) {
  const std::string& op = context.op().type;
  const int64_t count = CountOfIndexVector(context, "Ids");
  SKIFF_ENFORCE(x.shape.rank() >= 1, kInvalidArgument, op, ": X is a scalar, expected rows");
  Shape expected;
  if (context.Input("Ids").shape.rank() > 0) expected.Append(count);
  for (int axis = 1; axis < x.shape.rank(); ++axis) expected.Append(x.shape[axis]);
  CheckInputLike(context, "Updates", expected, x.dtype);
}

void InferScatter(OpContext& context) {
  CheckScatter(context, context.Input("X"));
  context.SetOutputLike("Out", "X");
}

void InferScatterGrad(OpContext& context) {
  CheckScatter(context, context.Input("Out@GRAD"));
  context.SetOutputLike("X@GRAD", "Out@GRAD");
  context.SetOutputLike("Updates@GRAD", "Updates");
}

template <typename T>
void ScatterRows(const AxisExtents& axis, const T* updates, const int64_t* ids, int64_t count,
                 bool overwrite, T* out) {
  if (!overwrite) {
    ForOwnedRuns<T>(axis, count, [=](int64_t, int64_t i, int64_t first, int64_t length) {
      std::fill_n(out + ids[i] * axis.inner + first, length, T{0});
    });
    return AddRows(axis, updates, ids, count, out);
  }
  ForOwnedRuns<T>(axis, count, [=](int64_t, int64_t i, int64_t first, int64_t length) {
    std::copy_n(updates + i * axis.inner + first, length, out + ids[i] * axis.inner + first);
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareScatter(PrepareContext& context) {
  return MakeKernel([axis = ExtentsOfAxis(context.Input("X").shape, 0),
                     overwrite = context.Attr<bool>("overwrite"), x = In<>(context, "X"),
                     ids = In<>(context, "Ids"), room = RequestRoomForIndices(context, "Ids"),
                     updates = In<T>(context, "Updates"),
                     out = Out<>(context, "Out")](const KernelContext& run) {
    Tensor& result = out.tensor(run);
    // Before anything is written: in place, an Error leaves X as it was.
    const int64_t* rows =
        ReadIndices(ids.tensor(run), axis.length, "scatter", "Ids", run.workspace(room));
    CopyBytes(x(run), result.raw_data(), result.byte_count());
    ScatterRows(axis, updates(run), rows, ids.count(run), overwrite, result.data<T>());
  });
}

// Sets the gradients of updates that a later one overwrote to 0. `last` has room for one number per
// row, and only the entries of rows that are named are written and read.
template <typename T>
void ZeroOverwritten(const AxisExtents& axis, const int64_t* ids, int64_t count, int64_t* last,
                     T* updates_grad) {
  for (int64_t i = 0; i < count; ++i) last[ids[i]] = i;
  for (int64_t i = 0; i < count; ++i) {
    if (last[ids[i]] != i) std::fill_n(updates_grad + i * axis.inner, axis.inner, T{0});
  }
}

template <typename T>
std::unique_ptr<Kernel> PrepareScatterGrad(PrepareContext& context) {
  const AxisExtents axis = ExtentsOfAxis(context.Input("Out@GRAD").shape, 0);
  const Out<T> x(context, "X@GRAD");
  const Out<T> updates(context, "Updates@GRAD");
  // There may be any number of rows without elements, which would be the size of the workspace.
  const bool finds_last = updates.is_there() && axis.inner > 0 && context.Attr<bool>("overwrite");
  const int last = finds_last ? context.RequestWorkspace(axis.length * 8) : -1;
  const int room = RequestRoomForIndices(context, "Ids");
  return MakeKernel(
      [=, ids = In<>(context, "Ids"), grad = In<>(context, "Out@GRAD")](const KernelContext& run) {
        const int64_t count = ids.count(run);
        const int64_t* rows =
            ReadIndices(ids.tensor(run), axis.length, "scatter_grad", "Ids", run.workspace(room));
        // First, since X@GRAD may be Out@GRAD.
        if (updates.is_there()) {
          T* to = updates(run);
          TakeRows(axis, grad(run), rows, count, sizeof(T), to);
          if (last >= 0) {
            ZeroOverwritten(axis, rows, count, static_cast<int64_t*>(run.workspace(last)), to);
          }
        }
        if (!x.is_there()) return;
        T* to = x(run);
        CopyBytes(grad(run), to, grad.tensor(run).byte_count());
        ForOwnedRuns<T>(axis, count, [=](int64_t, int64_t i, int64_t first, int64_t length) {
          std::fill_n(to + rows[i] * axis.inner + first, length, T{0});
        });
      });
}

}  // namespace

void RegisterScatter(OpRegistry& registry) {
  OpDef def;
  def.type = "scatter";
  def.doc =
      "Out = X, but Out[Ids[i]] = Updates[i] with `overwrite`, else the sum of the Updates of "
      "that row.";
  def.inputs = {
      {.name = "X", .doc = "Of rank 1 or more."},
      {.name = "Ids", .doc = "Rows, int32 or int64, [m], [m, 1] or a scalar.", .checks_data = true},
      {.name = "Updates", .doc = "[m] + X dims from 1 on; one row for a scalar."}};
  def.outputs = {{.name = "Out", .doc = "Of X's shape."}};
  def.attrs = {{.name = "overwrite",
                .type = AttrType::kBool,
                .default_value = true,
                .doc = "The last update of a row replaces it; else the sum of its updates does."}};
  def.infer = InferScatter;
  def.precision = Precision::kFollow;
  def.kernel_dtype_slot = "X";
  def.in_place = {{"X", "Out"}};
  OpDef grad =
      GradientOf(&def, {"Ids", ForShape("Updates"), "Out@GRAD"}, {"X@GRAD", "Updates@GRAD"});
  grad.doc =
      "X@GRAD = Out@GRAD with zeros in the rows Ids; Updates@GRAD[i] = Out@GRAD[Ids[i]], zeros "
      "if a later update overwrote it.";
  grad.infer = InferScatterGrad;
  // Nothing ties the rows of Out@GRAD to those of the X that scatter had.
  grad.data_checked_by = {};
  grad.in_place = {{"Out@GRAD", "X@GRAD"}};
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "scatter", []<typename T>(PrepareContext& context) { return PrepareScatter<T>(context); });
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "scatter_grad",
      []<typename T>(PrepareContext& context) { return PrepareScatterGrad<T>(context); });
}

}  // namespace skiff
