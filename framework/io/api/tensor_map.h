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

// The names of the arrays to read; other arrays of the file aren't looked at: files of other
// programs may hold arrays that Skiff can't read. None: all arrays.
using ArrayNames = std::optional<std::vector<std::string>>;

}  // namespace skiff
