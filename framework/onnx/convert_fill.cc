// Ops that make tensors of constants.
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/builder/tensor_layers.h"
#include "framework/onnx/onnx_node.h"
#include "framework/onnx/shape_dims.h"
#include "framework/onnx/tensor_proto.h"

namespace skiff {
namespace {

using Ints = std::vector<int64_t>;

void ConstantOfShape(const OnnxNode& node) {
  node.CheckInputs(1, 1);
  const Tensor value =
      node.HasAttr("value") ? node.TensorOf("value") : Tensor::FromValues<float>({1}, {0.0f});
  if (value.element_count() != 1)
    node.Invalid("its value has ", value.element_count(), " elements, expected one");
  const double number = NumberIn(value);
  if (value.dtype() == DType::kInt64 && static_cast<int64_t>(number) != value.Item<int64_t>()) {
    node.Unsupported("its value is beyond 2^53");
  }
  const auto dims = node.KnownInts(0);
  if (dims) return node.Out(0, layers::FillConstant(*dims, value.dtype(), number));
  Op op("fill_constant");
  op.SetInput("ShapeTensor", {node.In(0).name()});
  op.SetAttr("dtype", static_cast<int32_t>(value.dtype()));
  op.SetAttr("value", static_cast<float>(number));
  if (static_cast<double>(static_cast<float>(number)) != number) {
    node.Unsupported("its value isn't exact in float32");
  }
  node.Out(0, node.Emit(std::move(op)));
}

template <typename T>
Tensor VectorOf(const std::vector<T>& values) {
  return Tensor::FromValues<T>({static_cast<int64_t>(values.size())}, values);
}

void Constant(const OnnxNode& node) {
  if (node.HasAttr("value")) return node.OutKnown(0, node.TensorOf("value"));
  if (node.HasAttr("value_float")) {
    return node.OutKnown(0, Tensor::FromValues<float>({}, {node.Float("value_float", 0)}));
  }
  if (node.HasAttr("value_int")) {
    return node.OutKnown(0, Tensor::FromValues<int64_t>({}, {node.Int("value_int", 0)}));
  }
  if (node.HasAttr("value_floats"))
    return node.OutKnown(0, VectorOf(node.FloatList("value_floats")));
  if (node.HasAttr("value_ints")) return node.OutKnown(0, VectorOf(node.IntList("value_ints")));
  node.Unsupported("is a constant of strings or a sparse one");
}

// The window a0 - a1 cos(2 pi k / n) + a2 cos(4 pi k / n).
void CosineWindow(const OnnxNode& node, double a0, double a1, double a2) {
  node.CheckInputs(1, 1);
  const Ints size = node.Ints(0);
  if (size.size() != 1 || size[0] < 1) node.Invalid("its size isn't one number above 0");
  if (size[0] > kMostConstant) {
    node.Unsupported("makes ", size[0], " numbers, expected at most ", kMostConstant);
  }
  const auto n = static_cast<double>(node.Int("periodic", 1) != 0 ? size[0] : size[0] - 1);
  std::vector<double> values;
  for (int64_t k = 0; k < size[0]; ++k) {
    const double angle = n == 0 ? 0 : 2 * std::numbers::pi * static_cast<double>(k) / n;
    values.push_back(a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
  }
  const DType dtype = node.DTypeOfOnnx(node.Int("output_datatype", 1));
  node.Out(0, layers::Cast(layers::AssignValue(size, values), dtype));
}
void HannWindow(const OnnxNode& node) { CosineWindow(node, 0.5, 0.5, 0); }
void HammingWindow(const OnnxNode& node) { CosineWindow(node, 25.0 / 46, 21.0 / 46, 0); }
void BlackmanWindow(const OnnxNode& node) { CosineWindow(node, 0.42, 0.5, 0.08); }

void Range(const OnnxNode& node) {
  node.CheckInputs(3, 3);
  const DType dtype = node.In(0).dtype();
  if (dtype != DType::kInt32 && dtype != DType::kInt64 && dtype != DType::kFloat32 &&
      dtype != DType::kFloat64) {
    node.Unsupported("its numbers are of ", dtype);
  }
  Op op("range");
  const auto scalar = [&](size_t i) { return layers::Reshape(node.In(i), {1}).name(); };
  op.SetInput("Start", {scalar(0)}).SetInput("End", {scalar(1)}).SetInput("Step", {scalar(2)});
  node.Out(0, node.Emit(std::move(op)));
}

void EyeLike(const OnnxNode& node) {
  const Variable x = node.In(0);
  if (x.dims().size() != 2 || x.dims()[0] < 0 || x.dims()[1] < 0) {
    node.Unsupported("its input isn't a matrix of known extents");
  }
  const int64_t rows = x.dims()[0];
  const int64_t columns = x.dims()[1];
  if (MultiplyCounts(rows, columns) > kMostConstant) {
    node.Unsupported("makes a matrix of ", MultiplyCounts(rows, columns),
                     " elements, expected at most ", kMostConstant);
  }
  const int64_t k = Within32(node.Int("k", 0));
  std::vector<int32_t> values;
  for (int64_t i = 0; i < rows * columns; ++i) values.push_back(i / columns + k == i % columns);
  const DType dtype = node.HasAttr("dtype") ? node.DTypeOfOnnx(node.Int("dtype", 0)) : x.dtype();
  node.Out(0, layers::Cast(layers::AssignValue({rows, columns}, values), dtype));
}

}  // namespace

std::vector<OnnxConverterEntry> FillConverters() {
  return {
      {"BlackmanWindow", BlackmanWindow},
      {"Constant", Constant},
      {"ConstantOfShape", ConstantOfShape},
      {"EyeLike", EyeLike},
      {"HammingWindow", HammingWindow},
      {"HannWindow", HannWindow},
      {"Range", Range},
  };
}

}  // namespace skiff
