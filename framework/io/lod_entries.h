// LoD in files that have nothing but arrays: each level of a ragged tensor `x` is an array of its
// own, int64 [offsets], named `x.lod0` (the outermost), `x.lod1`, ….
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/io/tensor_stream.h"

namespace skiff {

// Returns whether a name is that of a level, such as "x.lod0".
bool IsLoDEntry(std::string_view name);

// Returns those of a file's entries that hold the arrays with these names and their levels. Throws
// Error, which begins with `path`: (kNotFound) for a name that isn't among the entries, and
// (kInvalidArgument) for that of a level.
std::vector<std::string> EntriesOf(const std::string& path, const std::vector<std::string>& names,
                                   const std::vector<std::string>& entries);

// Returns the tensors without their LoDs, and the arrays of the levels. Throws Error
// (kInvalidArgument) for a tensor whose name is that of a level: it would be read as one.
TensorMap WithLoDEntries(const TensorMap& tensors);

// Gives the ragged tensors their LoD, and removes the arrays of the levels. Throws Error
// (kDataLoss), which begins with `path`, for levels of a tensor that isn't there or has a LoD, a
// level that is missing while lower ones are there, and offsets that aren't int64, not in one
// dimension or not valid for the tensor.
void TakeLoDEntries(const std::string& path, TensorMap* tensors);

}  // namespace skiff
