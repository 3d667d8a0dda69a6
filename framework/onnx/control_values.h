// Values that exist before an op has written them: of arrays, and of what a block may write.
#pragma once

#include <string>

#include "framework/onnx/op_export.h"

namespace skiff::onnx_export {

// Returns the value of an array. One that nothing has written is empty.
std::string ArrayValue(OpExport& op, const std::string& variable, DType dtype);

// Returns the type of a variable, as a graph's input or output has it.
GraphType TypeOf(const Var& var);

}  // namespace skiff::onnx_export
