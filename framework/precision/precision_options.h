// In what precision a program computes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/base/api/dtype.h"
#include "framework/precision/loss_scaling.h"

namespace skiff {

enum class PrecisionLevel {
  // Parameters that only ops in half read are half themselves, and have float32 master weights
  // (PaddlePaddle's O2).
  kParameters,
  // Parameters stay float32, and each run rounds the parameters that ops in half read
  // (PaddlePaddle's O1, PyTorch's autocast).
  kCasts,
};

struct PrecisionOptions {
  // float32: nothing is rewritten. bfloat16 or float16: *half*.
  DType dtype = DType::kFloat32;
  PrecisionLevel level = PrecisionLevel::kParameters;
  // Ops that compute in float32, whatever their rule says: types of ops ("softmax"), and parts of
  // the name scopes of ops or of the names of parameters that they read ("decoder_").
  std::vector<std::string> keep_float32 = {};
  // Unset: the default LossScaling for float16, none for bfloat16, which has the range of float32.
  // With any, updates whose gradients aren't finite are skipped.
  std::optional<LossScaling> loss_scaling = {};
};

}  // namespace skiff
