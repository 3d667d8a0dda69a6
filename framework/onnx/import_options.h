// How a model of ONNX becomes a program.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace skiff {

struct OnnxImportOptions {
  // Weights, inputs and casts of float16 and bfloat16 become float32.
  bool widen_half = false;
  // By input: all of its dims, where the file leaves some open. So the import knows numbers that
  // depend on dims, such as the condition of a branch, and the program takes no other dims.
  std::map<std::string, std::vector<int64_t>> feed_dims = {};
};

}  // namespace skiff
