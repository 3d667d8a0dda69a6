// What readers of files of several tensors take and give.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/tensor/api/tensor.h"

namespace skiff {

// Tensors by name, as files hold them.
using TensorMap = std::map<std::string, Tensor>;

// The names of the arrays to read; whatever else the file holds isn't looked at: files of others
// hold arrays that Skiff can't read beside those that it can. None: all arrays.
using ArrayNames = std::optional<std::vector<std::string>>;

}  // namespace skiff
