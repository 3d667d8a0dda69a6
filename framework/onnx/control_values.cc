#include "framework/onnx/control_values.h"

namespace skiff::onnx_export {

std::string ArrayValue(OpExport& op, const std::string& variable, DType dtype) {
  const std::string value = op.values().Find(variable);
  if (!value.empty()) return value;
  return op.Node("SequenceEmpty", {}, {{"dtype", OnnxDType(dtype)}});
}

GraphType TypeOf(const Var& var) {
  if (var.kind == VarKind::kLoDTensorArray) {
    return {.dtype = var.dtype, .dims = {}, .is_sequence = true};
  }
  std::vector<GraphDim> dims;
  for (const int64_t dim : var.dims) dims.push_back({.size = dim});
  return {.dtype = var.dtype, .dims = std::move(dims)};
}

}  // namespace skiff::onnx_export
