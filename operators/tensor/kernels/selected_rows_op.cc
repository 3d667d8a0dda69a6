#include "operators/tensor/kernels/selected_rows_op.h"

#include <utility>

#include "framework/base/error.h"

namespace skiff {

OpDef RowOpDef(std::string type, std::string doc) {
  OpDef def;
  def.type = std::move(type);
  def.doc = std::move(doc);
  def.inputs = {{.name = "X", .doc = "Selected rows.", .selected_rows = true}};
  def.no_gradient_reason = "selected rows are gradients, and second derivatives are not provided";
  return def;
}

void CheckSelectedRows(const OpContext& context) {
  const TensorMeta& x = context.Input("X");
  SKIFF_ENFORCE(x.is_selected_rows(), kInvalidArgument, context.op().type, ": X is a dense ",
                x.dtype, " ", x.shape, ", expected selected rows");
}

}  // namespace skiff
