// Values that several exporters compose in the same way.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "framework/onnx/op_export.h"

namespace skiff::onnx_export {

// Returns the gelu of a value, exact or by tanh.
std::string GeluOf(OpExport& op, const std::string& x, DType dtype, bool approximate);

// Returns the value with its axes permuted: dim k is dim axes[k].
std::string Transposed(OpExport& op, const std::string& value, const std::vector<int64_t>& axes);
// Return the axes of a permutation of a tensor of this rank: from channels last to channels first,
// and from channels first to channels last.
std::vector<int64_t> ChannelsFirst(int64_t rank);
std::vector<int64_t> ChannelsLast(int64_t rank);

// Return the value with dims of 1 inserted at (taken away from) these axes.
std::string Unsqueezed(OpExport& op, const std::string& value, const std::vector<int64_t>& axes);
std::string Squeezed(OpExport& op, const std::string& value, const std::vector<int64_t>& axes);
std::string Reshaped(OpExport& op, const std::string& value, const std::vector<int64_t>& dims);
// Returns dims [begin, end) of a value, an int64 vector.
std::string DimsOf(OpExport& op, const std::string& value, int64_t begin, int64_t end);
// Returns the value with the dims of `shape`. Unknown dims are the dims of `dims_of`, which has the
// same rank.
std::string ReshapedTo(OpExport& op, const std::string& value, const Shape& shape,
                       const std::string& dims_of);
// Returns vectors one after the other.
std::string Joined(OpExport& op, const std::vector<std::string>& values, int64_t axis = 0);

// Returns a reduction such as ReduceSum over axes; over all if there are none.
std::string Reduced(OpExport& op, const std::string& type, const std::string& value,
                    const std::vector<int64_t>& axes, bool keeps_dims);

// Returns 0, 1, … up to a number of rank 0, int64.
std::string Counted(OpExport& op, const std::string& count);

}  // namespace skiff::onnx_export
