#include "framework/onnx/tensor_proto.h"

#include <charconv>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

#include "framework/base/dtype.h"
#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/io/file.h"
#include "framework/tensor/bools.h"
#include "operators/common/half_arrays.h"

namespace skiff {
namespace {

using onnx::TensorProto;

std::string NameOf(const TensorProto& proto) { return StrCat("tensor \"", proto.name(), "\""); }

// Copies the elements of a typed field, which has one entry for each.
template <typename T, typename Field>
void CopyField(const Field& field, std::string_view name, const TensorProto& proto, Tensor* out) {
  SKIFF_ENFORCE(field.size() == out->element_count(), kDataLoss, NameOf(proto), ": has ",
                field.size(), " entries in ", name, ", expected ", out->element_count(),
                " for the shape ", out->shape());
  auto* elements = static_cast<T*>(out->raw_data());
  for (int i = 0; i < field.size(); ++i) elements[i] = static_cast<T>(field.Get(i));
}

void CopyTyped(const TensorProto& proto, Tensor* out) {
  switch (out->dtype()) {
    case DType::kFloat32:
      return CopyField<float>(proto.float_data(), "float_data", proto, out);
    case DType::kFloat64:
      return CopyField<double>(proto.double_data(), "double_data", proto, out);
    case DType::kInt64:
      return CopyField<int64_t>(proto.int64_data(), "int64_data", proto, out);
    case DType::kInt32:
      return CopyField<int32_t>(proto.int32_data(), "int32_data", proto, out);
    case DType::kInt16:
      return CopyField<int16_t>(proto.int32_data(), "int32_data", proto, out);
    case DType::kInt8:
      return CopyField<int8_t>(proto.int32_data(), "int32_data", proto, out);
    case DType::kUint8:
    case DType::kBool:
      return CopyField<uint8_t>(proto.int32_data(), "int32_data", proto, out);
    case DType::kFloat16:
    case DType::kBFloat16:  // the bits
      return CopyField<uint16_t>(proto.int32_data(), "int32_data", proto, out);
  }
}

int64_t NumberOf(const onnx::StringStringEntryProto& entry, const TensorProto& proto) {
  int64_t number = -1;
  const char* end = entry.value().data() + entry.value().size();
  const auto [stop, fault] = std::from_chars(entry.value().data(), end, number);
  SKIFF_ENFORCE(fault == std::errc() && stop == end && number >= 0, kDataLoss, NameOf(proto),
                ": external data has ", entry.key(), " = \"", entry.value(),
                "\", expected a number of bytes");
  return number;
}

// Returns the path of the file, which must be below the folder, wherever links lead.
std::string ExternalPath(const std::string& location, const TensorProto& proto,
                         const std::string& folder) {
  namespace fs = std::filesystem;
  const auto refuse = [&](std::string_view why) {
    Throw(ErrorCode::kInvalidArgument, NameOf(proto), ": its data is in \"", location, "\", ", why,
          ", expected a file in the folder of the model");
  };
  const fs::path relative = fs::path(location).lexically_normal();
  if (location.empty() || location.find('\0') != std::string::npos) refuse("which names no file");
  if (relative.is_absolute() || *relative.begin() == "..") refuse("outside the model's folder");
  std::error_code fault;
  const fs::path base = fs::canonical(folder, fault);
  const fs::path path = fs::weakly_canonical(base / relative, fault);
  if (fault) refuse("which can't be reached");
  const fs::path inside = path.lexically_relative(base);
  if (inside.empty() || *inside.begin() == "..") refuse("outside the model's folder");
  return path.string();
}

void ReadExternal(const TensorProto& proto, const std::string& folder, Tensor* out) {
  std::string location;
  int64_t offset = 0;
  int64_t length = out->byte_count();
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = NumberOf(entry, proto);
    if (entry.key() == "length") length = NumberOf(entry, proto);
  }
  SKIFF_ENFORCE(length == out->byte_count(), kDataLoss, NameOf(proto), ": has ", length,
                " bytes of external data, expected ", out->byte_count(), " for ", out->dtype(), " ",
                out->shape());
  InputFile file(ExternalPath(location, proto, folder));
  file.Seek(offset);
  file.Read(out->raw_data(), length, NameOf(proto));
}

// Enforces that the model's file can hold the elements, before memory is taken for them.
void CheckHolds(const TensorProto& proto, DType dtype, const Shape& shape) {
  if (proto.data_location() == TensorProto::EXTERNAL) return;
  const int64_t elements = shape.element_count();
  if (proto.has_raw_data()) {
    const int64_t bytes = ByteCount(elements, dtype);
    SKIFF_ENFORCE(static_cast<int64_t>(proto.raw_data().size()) == bytes, kDataLoss, NameOf(proto),
                  ": has ", proto.raw_data().size(), " bytes, expected ", bytes, " for ", dtype,
                  " ", shape);
    return;
  }
  const int64_t most = int64_t{proto.float_data_size()} + proto.int32_data_size() +
                       proto.int64_data_size() + proto.double_data_size();
  SKIFF_ENFORCE(elements <= most, kDataLoss, NameOf(proto), ": has ", most, " elements, expected ",
                elements, " for the shape ", shape);
}

}  // namespace

std::optional<DType> DTypeFromOnnx(int32_t data_type) {
  switch (data_type) {
    case TensorProto::FLOAT:
      return DType::kFloat32;
    case TensorProto::DOUBLE:
      return DType::kFloat64;
    case TensorProto::INT64:
      return DType::kInt64;
    case TensorProto::INT32:
      return DType::kInt32;
    case TensorProto::INT16:
      return DType::kInt16;
    case TensorProto::INT8:
      return DType::kInt8;
    case TensorProto::UINT8:
      return DType::kUint8;
    case TensorProto::BOOL:
      return DType::kBool;
    case TensorProto::FLOAT16:
      return DType::kFloat16;
    case TensorProto::BFLOAT16:
      return DType::kBFloat16;
    default:
      return std::nullopt;
  }
}

std::string OnnxTypeName(int32_t data_type) {
  return TensorProto::DataType_IsValid(data_type)
             ? TensorProto::DataType_Name(static_cast<TensorProto::DataType>(data_type))
             : StrCat("type ", data_type);
}

Tensor TensorFromOnnx(const TensorProto& proto, const std::string& folder) {
  const std::optional<DType> dtype = DTypeFromOnnx(proto.data_type());
  SKIFF_ENFORCE(dtype.has_value(), kUnimplemented, NameOf(proto), ": is of ",
                OnnxTypeName(proto.data_type()), ", which Skiff doesn't have");
  SKIFF_ENFORCE(!proto.has_segment(), kUnimplemented, NameOf(proto),
                ": is a segment of a tensor, expected a whole one");
  SKIFF_ENFORCE(proto.dims_size() <= Shape::kMaxRank, kUnimplemented, NameOf(proto), ": has ",
                proto.dims_size(), " dims, expected at most ", Shape::kMaxRank);
  const std::vector<int64_t> dims(proto.dims().begin(), proto.dims().end());
  for (const int64_t dim : dims) {
    SKIFF_ENFORCE(dim >= 0, kDataLoss, NameOf(proto), ": has the dim ", dim,
                  ", expected none below 0");
  }
  try {
    CheckElementLimit(dims);
  } catch (const Error& error) {
    Throw(ErrorCode::kDataLoss, NameOf(proto), ": ", error.what());
  }
  const Shape shape(dims);
  CheckHolds(proto, *dtype, shape);
  const bool is_external = proto.data_location() == TensorProto::EXTERNAL;
  if (is_external) {
    // Says that the file is too short before the memory is taken.
    for (const auto& entry : proto.external_data()) {
      if (entry.key() != "location") continue;
      const InputFile file(ExternalPath(entry.value(), proto, folder));
      SKIFF_ENFORCE(ByteCount(shape.element_count(), *dtype) <= file.size(), kDataLoss,
                    NameOf(proto), ": needs ", ByteCount(shape.element_count(), *dtype),
                    " bytes for ", *dtype, " ", shape, ", but ", file.name(), " has ", file.size());
    }
  }
  Tensor tensor(shape, *dtype);
  if (is_external) {
    ReadExternal(proto, folder, &tensor);
  } else if (!proto.has_raw_data()) {
    CopyTyped(proto, &tensor);
  } else if (!proto.raw_data().empty()) {
    std::memcpy(tensor.raw_data(), proto.raw_data().data(), proto.raw_data().size());
  }
  if (const std::optional<int64_t> bad = FindBadBool(tensor)) {
    Throw(ErrorCode::kDataLoss, NameOf(proto), ": its bool ", *bad, " is neither 0 nor 1");
  }
  return tensor;
}

Tensor WidenedHalf(const Tensor& tensor) {
  if (!IsHalf(tensor.dtype())) return tensor;
  Tensor wide(tensor.shape(), DType::kFloat32);
  HalfArraysOf(tensor.dtype())
      .to_floats(static_cast<const uint16_t*>(tensor.raw_data()), tensor.element_count(),
                 wide.data<float>());
  return wide;
}

double NumberIn(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::kBool:
      return tensor.Item<bool>() ? 1 : 0;
    case DType::kInt8:
      return tensor.Item<int8_t>();
    case DType::kUint8:
      return tensor.Item<uint8_t>();
    case DType::kInt16:
      return tensor.Item<int16_t>();
    case DType::kInt32:
      return tensor.Item<int32_t>();
    case DType::kInt64:
      return static_cast<double>(tensor.Item<int64_t>());
    case DType::kFloat16:
    case DType::kBFloat16:
      return WidenedHalf(tensor).Item<float>();
    case DType::kFloat32:
      return tensor.Item<float>();
    case DType::kFloat64:
      return tensor.Item<double>();
  }
  Throw(ErrorCode::kInvalidArgument, "a number of the dtype ", static_cast<int>(tensor.dtype()));
}

}  // namespace skiff
