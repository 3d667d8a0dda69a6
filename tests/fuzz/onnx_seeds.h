// Models of ONNX that the fuzzer changes, besides models of single ops.
#pragma once

#include <string>
#include <vector>

#include "framework/onnx/onnx.pb.h"

namespace skiff::fuzz {

// Returns models with a loop, a branch, a scan, and functions of the file.
std::vector<onnx::ModelProto> NestedOnnxModels();

// Returns the .onnx files of a folder, in the order of their names. Throws what ReadOnnxModel
// throws.
std::vector<onnx::ModelProto> OnnxModelsIn(const std::string& directory);

}  // namespace skiff::fuzz
