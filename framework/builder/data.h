// Inputs of a program.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

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

}  // namespace skiff::layers
