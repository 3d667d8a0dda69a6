// selected_rows_to_dense: Out = the dense tensor that the selected rows X stand for: Out[r, :] =
// the sum of the slots of row r in their order, zeros where there is none.
//
// An op of Skiff's own: in Fluid `sum` with a dense tensor of zeros does that.
#include "operators/common/selected_rows.h"
#include "operators/tensor/kernels/selected_rows_op.h"
#include "operators/tensor/kernels/strided_copy.h"

namespace skiff {

void RegisterSelectedRowsToDense(OpRegistry& registry) {
  OpDef def = RowOpDef("selected_rows_to_dense",
                       "Out = the dense tensor that X stands for: repeated rows are added, the "
                       "others are zeros. An op of Skiff's own.");
  def.outputs = {{.name = "Out", .doc = "Dense, of the height of X."}};
  def.infer = [](OpContext& context) {
    CheckSelectedRows(context);
    const TensorMeta& x = context.Input("X");
    context.SetOutput("Out", x.dense_shape(), x.dtype);
  };
  registry.Add(std::move(def));
  registry.AddSelectedRowsKernels<float, double>(
      "selected_rows_to_dense", []<typename T>(PrepareContext& context) {
        return MakeKernel([x = context.InputIndex("X"),
                           out = context.OutputIndex("Out")](const KernelContext& run) {
          Tensor& dense = run.output(out);
          ZeroBytes(dense.raw_data(), dense.byte_count());
          AddSelectedRows(run.input(x), dense.data<T>());
        });
      });
}

}  // namespace skiff
