#include "framework/op/var_meta.h"

namespace skiff {

TensorMeta MetaOf(const Var& var) {
  TensorMeta meta{.shape = Shape(var.dims),
                  .dtype = var.dtype,
                  .lod_level = var.lod_level,
                  .layout = {},
                  .persistable = var.persistable};
  meta.is_array = var.kind == VarKind::kLoDTensorArray;
  if (var.kind != VarKind::kSelectedRows || var.dims.empty()) return meta;
  meta.layout = Layout::SelectedRows(var.dims[0]);
  // A program declares the dims of the dense tensor. How many rows are held is known in a plan
  // only.
  meta.shape[0] = -1;
  return meta;
}

void SetMeta(const TensorMeta& meta, Var* var) {
  var->dims = meta.dense_shape().ToVector();
  var->dtype = meta.dtype;
  var->lod_level = meta.lod_level;
  if (meta.is_selected_rows()) {
    var->kind = VarKind::kSelectedRows;
  } else if (meta.is_array) {
    var->kind = VarKind::kLoDTensorArray;
    // Other kinds (arrays, holders) stay what they are.
  } else if (var->kind == VarKind::kSelectedRows) {
    var->kind = VarKind::kLoDTensor;
  }
}

}  // namespace skiff
