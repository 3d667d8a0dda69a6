// ONNX's files as messages: a .onnx file is one serialised ModelProto.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/onnx/onnx.pb.h"

namespace skiff {

// The limit of protobuf itself; larger models have their weights in files beside them.
inline constexpr int64_t kOnnxFileLimitBytes = (int64_t{1} << 31) - 1;
// How deep messages may be nested in each other: a subgraph is three levels below its node's graph.
inline constexpr int kOnnxNestingLimit = 100;

// Returns the message that `bytes` are. Fields that the schema doesn't have are skipped. Throws
// Error (kDataLoss) if the bytes are no ModelProto (truncated, corrupt, nested too deep) or hold no
// graph, and (kOutOfRange) beyond kOnnxFileLimitBytes. `what` names the bytes in the message.
onnx::ModelProto ParseOnnxModel(std::string_view bytes, std::string_view what);

// Reads a file. Throws what ReadFile throws, (kOutOfRange) beyond kOnnxFileLimitBytes, and as
// ParseOnnxModel.
onnx::ModelProto ReadOnnxModel(const std::string& path);

// Writes a file through AtomicFile; equal messages give equal bytes. Throws what AtomicFile throws,
// and Error (kOutOfRange), before writing anything, if the model exceeds kOnnxFileLimitBytes.
void WriteOnnxModel(const std::string& path, const onnx::ModelProto& model);

}  // namespace skiff
