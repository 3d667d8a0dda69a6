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

// Returns the entries of a file that hold the named arrays and the levels of their LoDs. Throws
// Error, which begins with `path`: (kNotFound) for a name that isn't among the entries, and
// (kInvalidArgument) for the name of a level.
std::vector<std::string> EntriesOf(const std::string& path, const std::vector<std::string>& names,
                                   const std::vector<std::string>& entries);

// Returns the tensors without their LoDs, and the arrays of the levels. Throws Error
// (kInvalidArgument) for a tensor with the name of a level: readers would take the tensor for a
// level.
TensorMap WithLoDEntries(const TensorMap& tensors);

// Gives the ragged tensors their LoD, and removes the arrays of the levels. Throws Error
// (kDataLoss), which begins with `path`, for levels of a missing tensor or of a tensor with a LoD,
// for a missing level below a present level, and for offsets that aren't int64, not in one
// dimension or not valid for the tensor.
void TakeLoDEntries(const std::string& path, TensorMap* tensors);

}  // namespace skiff
