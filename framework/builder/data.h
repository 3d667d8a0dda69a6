// Inputs of a program, and parameters of one's own.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include "framework/builder/param_attr.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

struct DataOptions {
  int32_t lod_level = 0;
  bool stop_gradient = true;  // false: the feed gets a gradient
};

// Returns a new variable that each run feeds, in the root block of the main program. A dim of -1
// stands for any extent. Throws an Error (kInvalidArgument) if the name is empty or exists already,
// or if a dim is below -1.
Variable Data(const std::string& name, const std::vector<int64_t>& dims,
              DType dtype = DType::kFloat32, const DataOptions& options = {},
              std::source_location site = std::source_location::current());

// Returns a parameter that no layer makes, in the root block of both programs; Fluid's
// create_parameter. Without an initializer in `attr` it gets Xavier's. An existing parameter of the
// same name is shared. Throws an Error (kInvalidArgument) if it exists with other dims or another
// dtype, or if a dim is below 1. Layers use the result through ParamAttr::shared.
Variable CreateParameter(const std::vector<int64_t>& dims, DType dtype = DType::kFloat32,
                         const ParamAttr& attr = {},
                         std::source_location site = std::source_location::current());

}  // namespace skiff::layers
