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

// A variable that each run feeds, in the root block of the main program; -1: any extent. Error if
// the name exists or is empty, and for a dim below -1.
Variable Data(const std::string& name, const std::vector<int64_t>& dims,
              DType dtype = DType::kFloat32, const DataOptions& options = {},
              std::source_location site = std::source_location::current());

// A parameter that no layer makes, in the root of both programs; Fluid's create_parameter.
// Undefined initializer: Xavier. A parameter that exists by that name is shared. Error if it exists
// with other dims or dtype, and for dims below 1. Layers use the result through ParamAttr::shared.
Variable CreateParameter(const std::vector<int64_t>& dims, DType dtype = DType::kFloat32,
                         const ParamAttr& attr = {},
                         std::source_location site = std::source_location::current());

}  // namespace skiff::layers
