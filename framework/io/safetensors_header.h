// The header of a safetensors file. Internal to framework/io.
//
// The header is the length of the JSON (uint64) and the JSON, which may begin and end with
// whitespace:
//   {"__metadata__": {"key": "value"},
//    "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
// Offsets count from the end of the header, where the elements begin.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/io/byte_stream.h"
#include "framework/io/tensor_stream.h"

namespace skiff {

struct SafetensorsEntry {
  std::string dtype_name;
  std::optional<DType> dtype;  // none: Skiff doesn't have it
  std::vector<int64_t> dims;
  int64_t begin = 0;
  int64_t end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata;
};

// Reads a header and leaves the source at the first element. Throws Error (kDataLoss) for anything
// that the format doesn't allow, and unless the tensors fill the rest of the source without gaps
// and overlaps. Doesn't compare the bytes of tensors whose dtype Skiff doesn't have.
SafetensorsHeader ReadSafetensorsHeader(ByteSource* source);

// Returns the names of the tensors in the order in which a file holds them: the largest dtype
// first, so that each tensor begins at a multiple of its element size, then by name.
std::vector<std::string> SafetensorsOrder(const TensorMap& tensors);

// Returns the header of a file with the tensors in that order, padded with spaces so that the
// elements begin at a multiple of kBufferAlignment. Throws Error (kInvalidArgument) for names and
// metadata that aren't UTF-8 and for a tensor named __metadata__, and (kOutOfRange) if the header
// is longer than readers accept.
std::string SafetensorsHeaderBytes(const TensorMap& tensors, const std::vector<std::string>& order,
                                   const std::map<std::string, std::string>& metadata);

}  // namespace skiff
