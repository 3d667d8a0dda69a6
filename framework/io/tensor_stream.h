// A tensor as a stream of bytes, in the format of Fluid's ops save and save_combine.
//
// Little-endian, in this order:
//   uint32 0                                  version
//   uint64 levels; then for each level
//     uint64 bytes, and that many bytes of uint64 offsets
//   uint32 0                                  version of the tensor
//   int32 bytes, and that many bytes of VarType.TensorDesc
//   the elements, row-major, without length or padding
#pragma once

#include <vector>

#include "framework/io/api/tensor_map.h"
#include "framework/io/byte_stream.h"
#include "framework/tensor/tensor.h"

namespace skiff {

// Writes a tensor of any place. Throws Error (kFailedPrecondition) for a tensor without storage or
// of a blocked layout, and what the sink throws.
void WriteTensorStream(const Tensor& tensor, ByteSink* sink);

// Reads one tensor to the CPU and leaves the source after it. Checks every size against the
// remaining bytes before allocating memory. Throws Error (kDataLoss), naming source, offset,
// finding and expectation, for anything that the format doesn't allow: a version other than 0,
// truncation, an invalid LoD, a desc that doesn't parse, dims that are negative, too many or too
// large, a bool other than 0 and 1. Throws Error (kUnimplemented) for a dtype that Skiff doesn't
// support.
Tensor ReadTensorStream(ByteSource* source);

// The elements at the end of a tensor stream, row-major and little-endian, which other formats have
// as well.
//
// Writes the elements of a tensor of any place and of plain layout.
void WriteElements(const Tensor& tensor, ByteSink* sink);
// Reads elements to the CPU. Throws Error
// (kDataLoss) if `dims` aren't a shape, if fewer bytes
// remain, or for a bool that is neither 0 nor 1.
Tensor ReadElements(DType dtype, const std::vector<int64_t>& dims, ByteSource* source);

}  // namespace skiff
