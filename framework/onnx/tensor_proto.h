// ONNX's tensors and types as Skiff's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "framework/onnx/onnx.pb.h"
#include "framework/tensor/tensor.h"

namespace skiff {

// Returns the dtype of a TensorProto::DataType, nothing if Skiff has none for it (strings, complex
// numbers, 16 to 64 bits without a sign, 4 and 8 bits of floats).
std::optional<DType> DTypeFromOnnx(int32_t data_type);
// Returns "FLOAT", "STRING", …, or the number of a type that the schema doesn't have.
std::string OnnxTypeName(int32_t data_type);

// Returns the tensor. External data is read from `folder`, the folder of the model's file. Throws
// an Error that names the tensor: kUnimplemented for a dtype that Skiff doesn't have; kDataLoss if
// dims and data don't fit, or if the file of the data is too short; kInvalidArgument for a file
// outside the folder, also by way of a link; and what InputFile throws.
Tensor TensorFromOnnx(const onnx::TensorProto& proto, const std::string& folder);

// Returns a copy in float32 of a tensor of float16 or bfloat16; any other tensor as it is.
Tensor WidenedHalf(const Tensor& tensor);

// Returns the only element of a tensor, rounded to float64: a bool is 0 or 1.
double NumberIn(const Tensor& tensor);

}  // namespace skiff
