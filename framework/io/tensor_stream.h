// One tensor as a stream of bytes, in Fluid's format (what its save and save_combine ops write).
//
// Little-endian, in this order:
//   uint32 0                                  version
//   uint64 levels; then for each level
//     uint64 bytes, and that many bytes of uint64 offsets
//   uint32 0                                  version of the tensor
//   int32 bytes, and that many bytes of VarType.TensorDesc
//   the elements, row-major, without length or padding
#pragma once

#include "framework/io/byte_stream.h"
#include "framework/tensor/tensor.h"

namespace skiff {

// Writes a tensor of any place. Error (kFailedPrecondition) for a tensor without storage or of a
// blocked layout; else the sink's.
void WriteTensorStream(const Tensor& tensor, ByteSink* sink);

// Reads one tensor, on the CPU, and leaves the source behind it. Every size is checked against the
// bytes that remain before memory is taken. Error (kDataLoss), naming source, offset, what was
// found and what was expected, for anything the format doesn't allow: versions other than 0,
// truncation, an invalid LoD, a desc that doesn't parse, dims that are negative, too many or too
// large, a bool that is neither 0 nor 1. Error (kUnimplemented) for a dtype that Skiff doesn't
// have.
Tensor ReadTensorStream(ByteSource* source);

// Reads the elements of a tensor, row-major and little-endian, as they end a tensor stream. Error
// (kDataLoss) if `dims` make no shape, or fewer bytes remain, or for a bool that is neither 0
// nor 1.
Tensor ReadElements(DType dtype, const std::vector<int64_t>& dims, ByteSource* source);

}  // namespace skiff
