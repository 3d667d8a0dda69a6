// merge_selected_rows: the selected rows X with repeated rows added together.
//
// Source: Fluid's merge_selected_rows. Out has as many slots as X, so that its shape doesn't depend
// on data: first the different rows in ascending order, each the sum of its slots in their order,
// then unused slots. (Fluid's Out has as many rows as there are different ones.)
#include "operators/common/merged_rows.h"
#include "operators/common/selected_rows.h"
#include "operators/tensor/kernels/selected_rows_op.h"

namespace skiff {
namespace {

template <typename T>
void Merge(const MergedRows& rows, const Tensor& x, Tensor* out) {
  const int64_t width = RowWidth(x.shape());
  const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, width));
  const T* values = x.data<T>();
  T* sums = out->data<T>();
  ParallelFor(rows.count(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      AddSlots(values, width, rows.slots(i), 0, width, sums + i * width);
    }
  });
  std::ranges::fill(out->rows(), -1);
  for (int64_t i = 0; i < rows.count(); ++i) out->rows()[static_cast<size_t>(i)] = rows.row(i);
}

}  // namespace

void RegisterMergeSelectedRows(OpRegistry& registry) {
  OpDef def = RowOpDef("merge_selected_rows",
                       "Out = X with repeated rows added together: the different rows, ascending, "
                       "then unused slots.");
  def.outputs = {
      {.name = "Out", .doc = "Selected rows, each at most once.", .selected_rows = true}};
  def.infer = [](OpContext& context) {
    CheckSelectedRows(context);
    context.SetOutputLike("Out", "X");
  };
  registry.Add(std::move(def));
  registry.AddSelectedRowsKernels<float, double>(
      "merge_selected_rows", []<typename T>(PrepareContext& context) {
        const int workspace =
            context.RequestWorkspace(MergedRowsWorkspaceBytes(context.Input("X").shape[0]));
        return MakeRowsKernel(
            [=, x = In<>(context, "X"), out = Out<>(context, "Out")](const KernelContext& run) {
              const Tensor& rows = x.tensor(run);
              Merge<T>(MergeRows(rows.rows(), rows.height(), run.workspace(workspace)), rows,
                       &out.tensor(run));
            });
      });
}

}  // namespace skiff
