#include "framework/onnx/compositions.h"

#include <cmath>

namespace skiff::onnx_export {

std::string GeluOf(OpExport& op, const std::string& x, DType dtype, bool approximate) {
  const auto number = [&](double value) { return op.Number(dtype, value); };
  std::string share;
  if (approximate) {
    const std::string cube = op.Node("Mul", {x, op.Node("Mul", {x, x})});
    const std::string inner = op.Node("Add", {x, op.Node("Mul", {cube, number(0.044715)})});
    share = op.Node("Tanh", {op.Node("Mul", {inner, number(std::sqrt(2 / M_PI))})});
  } else {
    share = op.Node("Erf", {op.Node("Div", {x, number(std::sqrt(2.0))})});
  }
  const std::string doubled = op.Node("Mul", {x, op.Node("Add", {share, number(1)})});
  return op.Node("Mul", {doubled, number(0.5)});
}

std::string Transposed(OpExport& op, const std::string& value, const std::vector<int64_t>& axes) {
  return op.Node("Transpose", {value}, {{"perm", axes}});
}

std::vector<int64_t> ChannelsFirst(int64_t rank) {
  std::vector<int64_t> axes = {0, rank - 1};
  for (int64_t i = 1; i + 1 < rank; ++i) axes.push_back(i);
  return axes;
}

std::vector<int64_t> ChannelsLast(int64_t rank) {
  std::vector<int64_t> axes = {0};
  for (int64_t i = 2; i < rank; ++i) axes.push_back(i);
  axes.push_back(1);
  return axes;
}

std::string Unsqueezed(OpExport& op, const std::string& value, const std::vector<int64_t>& axes) {
  return axes.empty() ? value : op.Node("Unsqueeze", {value, op.IntVector(axes)});
}

std::string Squeezed(OpExport& op, const std::string& value, const std::vector<int64_t>& axes) {
  return axes.empty() ? value : op.Node("Squeeze", {value, op.IntVector(axes)});
}

std::string Reshaped(OpExport& op, const std::string& value, const std::vector<int64_t>& dims) {
  return op.Node("Reshape", {value, op.IntVector(dims)});
}

std::string DimsOf(OpExport& op, const std::string& value, int64_t begin, int64_t end) {
  const std::string dims = op.Node("Shape", {value});
  return op.Node("Slice", {dims, op.IntVector({begin}), op.IntVector({end}), op.IntVector({0})});
}

std::string ReshapedTo(OpExport& op, const std::string& value, const Shape& shape,
                       const std::string& dims_of) {
  return shape.is_known() ? Reshaped(op, value, shape.ToVector())
                          : op.Node("Reshape", {value, op.Node("Shape", {dims_of})});
}

std::string Joined(OpExport& op, const std::vector<std::string>& values, int64_t axis) {
  return values.size() == 1 ? values[0] : op.Node("Concat", values, {{"axis", axis}});
}

std::string Reduced(OpExport& op, const std::string& type, const std::string& value,
                    const std::vector<int64_t>& axes, bool keeps_dims) {
  const NodeAttr keeps = {"keepdims", int64_t{keeps_dims ? 1 : 0}};
  if (axes.empty()) return op.Node(type, {value}, {keeps});
  // The axes of ReduceSum have been an input since opset 13, those of the others since 18.
  const bool is_input = type == "ReduceSum" || op.opset() >= 18;
  if (is_input) return op.Node(type, {value, op.IntVector(axes)}, {keeps});
  return op.Node(type, {value}, {{"axes", axes}, keeps});
}

std::string Counted(OpExport& op, const std::string& count) {
  return op.Node("Range", {op.Number(DType::kInt64, 0), count, op.Number(DType::kInt64, 1)});
}

}  // namespace skiff::onnx_export
