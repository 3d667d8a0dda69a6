// selected_rows_to_dense: Out = the dense tensor that the selected rows X represent: Out[r, :] =
// the sum of the slots of row r in their order, or zeros if there are none.
//
// Fluid has no such op; there, `sum` with a dense tensor of zeros does this.
#include "operators/common/memory_mover.h"
#include "operators/common/selected_rows.h"
#include "operators/tensor/kernels/selected_rows_op.h"
#include "operators/tensor/kernels/strided_copy.h"

namespace skiff {

void RegisterSelectedRowsToDense(OpRegistry& registry) {
  OpDef def = RowOpDef("selected_rows_to_dense",
                       "Out = the dense tensor that X represents: repeated rows are added, the "
                       "others are zeros. Fluid has no such op.");
  def.outputs = {{.name = "Out", .doc = "Dense, of the height of X."}};
  def.infer = [](OpContext& context) {
    CheckSelectedRows(context);
    const TensorMeta& x = context.Input("X");
    context.SetOutput("Out", x.dense_shape(), x.dtype);
  };
  registry.Add(std::move(def));
  registry.AddSelectedRowsKernels<float, double>(
      "selected_rows_to_dense", []<typename T>(PrepareContext& context) {
        return MakeRowsKernel(
            [x = In<>(context, "X"), out = Out<>(context, "Out")](const KernelContext& run) {
              Tensor& dense = out.tensor(run);
              ZeroBytes(dense.raw_data(), dense.byte_count());
              AddSelectedRows(x.tensor(run), dense.data<T>());
            });
      });
}

}  // namespace skiff
