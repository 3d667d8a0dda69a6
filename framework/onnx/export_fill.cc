// Ops that make tensors of constants.
#include <cstdlib>
#include <string>
#include <vector>

#include "framework/onnx/compositions.h"
#include "framework/onnx/exporters.h"

namespace skiff::onnx_export {
namespace {

template <typename T>
Tensor OneElement(T value) {
  return Tensor::FromValues(Shape{1}, std::vector<T>{value});
}

// Returns [1] of the dtype with the number that str_value has, else `value`.
Tensor FillTensorOf(OpExport& op, DType dtype) {
  const std::string text = op.Text("str_value");
  const auto value = static_cast<double>(op.Float("value"));
  if (IsHalf(dtype)) Refuse("dtype ", dtype, ", expected one of four bytes or more");
  const bool is_integer = !IsFloat(dtype) && !text.empty();
  if (is_integer && text.find_first_not_of("+-0123456789") != std::string::npos) {
    Refuse("str_value = \"", text, "\" for ", dtype);
  }
  const int64_t integer = is_integer ? std::strtoll(text.c_str(), nullptr, 10) : 0;
  const double real = text.empty() ? value : std::strtod(text.c_str(), nullptr);
  Tensor tensor(Shape{1}, dtype);
  VisitDType<bool, int8_t, uint8_t, int16_t, int32_t, int64_t, float, double>(
      dtype, "a constant", [&]<typename T>(T) {
        *tensor.data<T>() = is_integer ? static_cast<T>(integer) : static_cast<T>(real);
      });
  return tensor;
}

std::string Filled(OpExport& op, const std::string& shape, const Tensor& value) {
  return op.Node("ConstantOfShape", {shape}, {{"value", value}});
}

void FillConstant(OpExport& op) {
  const DType dtype = op.OutDType("Out");
  op.Ignore("dtype");
  const std::string shape = op.IntsValue("shape");
  if (!op.Has("ValueTensor")) return op.Set("Out", Filled(op, shape, FillTensorOf(op, dtype)));
  op.Ignore("value");
  op.Ignore("str_value");
  const std::string value = Reshaped(op, op.Cast(op.In("ValueTensor"), dtype), {});
  op.Set("Out", op.Node("Expand", {value, shape}));
}

void FillBatchSizeLike(OpExport& op) {
  const DType dtype = op.OutDType("Out");
  op.Ignore("dtype");
  const std::vector<int64_t> dims = op.Ints("shape");
  const int64_t from = op.Int("input_dim_idx");
  const int64_t to = op.Int("output_dim_idx");
  const std::vector<int64_t> front(dims.begin(), dims.begin() + to);
  const std::vector<int64_t> back(dims.begin() + to + 1, dims.end());
  const std::string batch = DimsOf(op, op.In("Input"), from, from + 1);
  const std::string shape = Joined(op, {op.IntVector(front), batch, op.IntVector(back)});
  op.Set("Out", Filled(op, shape, FillTensorOf(op, dtype)));
}

void FillAnyLike(OpExport& op) {
  op.Ignore("dtype");
  const DType dtype = op.OutDType("Out");
  Tensor value(Shape{1}, dtype);
  const auto number = static_cast<double>(op.Float("value"));
  VisitDType<bool, int8_t, uint8_t, int16_t, int32_t, int64_t, float, double>(
      dtype, "a constant", [&]<typename T>(T) { *value.data<T>() = static_cast<T>(number); });
  op.Set("Out", Filled(op, op.Node("Shape", {op.In("X")}), value));
}

void FillZerosLike(OpExport& op) {
  Tensor zero(Shape{1}, op.OutDType("Out"));
  VisitDType<bool, int8_t, uint8_t, int16_t, int32_t, int64_t, float, double>(
      zero.dtype(), "a constant", [&]<typename T>(T) { *zero.data<T>() = T{}; });
  op.Set("Out", Filled(op, op.Node("Shape", {op.In("X")}), zero));
}

template <typename T, typename Given>
Tensor ValuesOf(const Shape& shape, const std::vector<Given>& given) {
  Tensor tensor(shape, kDTypeOf<T>);
  if (static_cast<int64_t>(given.size()) != shape.element_count()) {
    Refuse("there are ", given.size(), " values for shape ", shape);
  }
  T* out = tensor.data<T>();
  for (size_t i = 0; i < given.size(); ++i) out[i] = static_cast<T>(given[i]);
  return tensor;
}

void AssignValue(OpExport& op) {
  const DType dtype = op.OutDType("Out");
  for (const char* name : {"dtype", "shape", "bool_values", "fp32_values", "fp64_values",
                           "int32_values", "int64_values"}) {
    op.Ignore(name);
  }
  const Shape& shape = op.OutShape("Out");
  const auto get = [&]<typename Given>(const char* name, Given) {
    return std::get<std::vector<Given>>(op.Attr(name));
  };
  switch (dtype) {
    case DType::kBool:
      return op.Set("Out", op.Constant(ValuesOf<bool>(shape, get("bool_values", int32_t{}))));
    case DType::kFloat32:
      return op.Set("Out", op.Constant(ValuesOf<float>(shape, get("fp32_values", float{}))));
    case DType::kFloat64:
      return op.Set("Out", op.Constant(ValuesOf<double>(shape, get("fp64_values", double{}))));
    case DType::kInt32:
      return op.Set("Out", op.Constant(ValuesOf<int32_t>(shape, get("int32_values", int32_t{}))));
    case DType::kInt64:
      return op.Set("Out", op.Constant(ValuesOf<int64_t>(shape, get("int64_values", int64_t{}))));
    default:
      Refuse("dtype ", dtype);
  }
}

void Eye(OpExport& op) {
  for (const char* name : {"num_rows", "num_columns", "dtype"}) op.Ignore(name);
  const Shape& shape = op.OutShape("Out");
  const std::string zeros = Filled(op, op.IntVector(shape.ToVector()), OneElement(0.0f));
  op.Set("Out", op.Node("EyeLike", {zeros}, {{"dtype", OnnxDType(op.OutDType("Out"))}}));
}

void Range(OpExport& op) {
  const auto scalar = [&](const char* slot) { return Reshaped(op, op.In(slot), {}); };
  op.Set("Out", op.Node("Range", {scalar("Start"), scalar("End"), scalar("Step")}));
}

// 1 on the diagonal `offset` of [rows, columns].
std::string Diagonal(OpExport& op, const std::string& rows, const std::string& columns,
                     int64_t offset) {
  const std::string i = Unsqueezed(op, Counted(op, rows), {1});
  const std::string j = Unsqueezed(op, Counted(op, columns), {0});
  const std::string shifted =
      op.Node("Add", {i, op.Number(DType::kInt64, static_cast<double>(offset))});
  return op.Node("Equal", {shifted, j});
}

std::string Extent(OpExport& op, const std::string& value, int64_t axis) {
  return Reshaped(op, DimsOf(op, value, axis, axis + 1), {});
}

// A matrix with the vector on a diagonal: row i + max(0, -offset), column i + max(0, offset).
void DiagOf(OpExport& op, std::string_view slot, int64_t offset, float padding) {
  const std::string x = Reshaped(op, op.In(slot), {-1});
  const int64_t shift = std::abs(offset);
  const std::string size =
      op.Node("Add", {Extent(op, x, 0), op.Number(DType::kInt64, static_cast<double>(shift))});
  const std::string is_on = Diagonal(op, size, size, offset);
  const std::vector<int64_t> before_after = {offset < 0 ? shift : 0, offset < 0 ? 0 : shift};
  const std::string rows =
      op.Node("Pad", {x, op.IntVector(before_after), op.Number(op.DTypeOf(slot), 0)},
              {{"mode", std::string("constant")}});
  const std::string fill = op.Number(op.DTypeOf(slot), static_cast<double>(padding));
  op.Set("Out", op.Node("Where", {is_on, Unsqueezed(op, rows, {1}), fill}));
}

void Diag(OpExport& op) { DiagOf(op, "Diagonal", 0, 0); }

void DiagV2(OpExport& op) {
  const int64_t offset = op.Int("offset");
  const float padding = op.Float("padding_value");
  if (op.Rank("X") < 2) return DiagOf(op, "X", offset, padding);
  const std::string x = op.In("X");
  const std::string is_on = Diagonal(op, Extent(op, x, 0), Extent(op, x, 1), offset);
  op.Set("Out", op.Node("Compress", {x, Reshaped(op, is_on, {-1})}));
}

}  // namespace

void AddFillExporters(ExporterTable* table) {
  table->AddMover("fill_constant", FillConstant);
  table->AddMover("fill_constant_batch_size_like", FillBatchSizeLike);
  table->AddMover("fill_any_like", FillAnyLike);
  table->AddMover("fill_zeros_like", FillZerosLike);
  table->AddMover("assign_value", AssignValue);
  table->AddMover("eye", Eye);
  table->Add("range", Range);
  table->Add("diag", Diag);
  table->Add("diag_v2", DiagV2);
}

}  // namespace skiff::onnx_export
