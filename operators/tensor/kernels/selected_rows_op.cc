#include "operators/tensor/kernels/selected_rows_op.h"

#include "framework/base/error.h"

namespace skiff {

OpDef RowOpDef(StaticText type, StaticText doc) {
  OpDef def;
  def.type = type;
  def.doc = doc;
  def.inputs = {{.name = "X", .doc = "Selected rows.", .selected_rows = true}};
  def.precision = Precision::kFollow;
  def.no_gradient_reason = "selected rows are gradients, and second derivatives are not provided";
  return def;
}

void CheckSelectedRows(const OpContext& context) {
  const TensorMeta& x = context.Input("X");
  SKIFF_ENFORCE(x.is_selected_rows(), kInvalidArgument, context.op().type, ": X is a dense ",
                x.dtype, " ", x.shape, ", expected selected rows");
}

}  // namespace skiff
