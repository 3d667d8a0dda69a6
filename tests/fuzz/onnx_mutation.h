// Random changes of models of ONNX.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/onnx/onnx.pb.h"

namespace skiff::fuzz {

struct OnnxMutant {
  std::string bytes;  // of the file
  std::vector<std::string> changes;
};

// Returns a seed with one to four changes: of ops, arguments and attributes of nodes, of the order
// of nodes, of dims and types of inputs and initializers, of their numbers, of versions, and of
// single bytes. It depends on the seeds and the number alone.
OnnxMutant MakeOnnxMutant(const std::vector<onnx::ModelProto>& seeds, uint64_t number);

}  // namespace skiff::fuzz
