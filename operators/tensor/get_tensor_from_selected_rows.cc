// get_tensor_from_selected_rows: Out = the values of the selected rows X as a dense tensor with a
// row for each slot, in order. Rows of unused slots are zeros.
//
// Source: Fluid's get_tensor_from_selected_rows, which it inserts after merge_selected_rows to
// compute norms of gradients. In Fluid, Out ends with the last row present. Here rows of zeros
// follow, since a shape doesn't depend on data; sums, norms and largest magnitudes are the same.
// For the dense tensor that the rows represent, see selected_rows_to_dense.
#include <algorithm>

#include "operators/common/selected_rows.h"
#include "operators/tensor/kernels/selected_rows_op.h"

namespace skiff {

void RegisterGetTensorFromSelectedRows(OpRegistry& registry) {
  OpDef def = RowOpDef("get_tensor_from_selected_rows",
                       "Out = the values of X, a row for each slot; zeros for unused slots.");
  def.outputs = {{.name = "Out", .doc = "The values, dense."}};
  def.infer = [](OpContext& context) {
    CheckSelectedRows(context);
    const TensorMeta& x = context.Input("X");
    context.SetOutput("Out", x.shape, x.dtype);
  };
  registry.Add(std::move(def));
  registry.AddSelectedRowsKernels<float, double>(
      "get_tensor_from_selected_rows", []<typename T>(PrepareContext& context) {
        return MakeRowsKernel(
            [x = In<>(context, "X"), out = Out<T>(context, "Out")](const KernelContext& run) {
              const Tensor& rows = x.tensor(run);
              const int64_t width = RowWidth(rows.shape());
              const T* from = rows.data<T>();
              T* to = out(run);
              for (const int64_t row : rows.rows()) {
                // The values of an unused slot are undefined.
                if (row < 0) {
                  std::fill_n(to, width, T{0});
                } else {
                  std::copy_n(from, width, to);
                }
                from += width;
                to += width;
              }
            });
      });
}

}  // namespace skiff
