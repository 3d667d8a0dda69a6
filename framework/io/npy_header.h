// The header of a .npy file. Internal to framework/io.
//
// It consists of "\x93NUMPY", two bytes of version, the length of the text (uint16 in version 1.0,
// uint32 later), and the text: a Python dict with the keys descr, fortran_order and shape, spaces,
// a line break. Source: NumPy, "A simple file format for NumPy arrays" (numpy.lib.format).
#pragma once

#include <string>
#include <vector>

#include "framework/io/byte_stream.h"
#include "framework/tensor/tensor.h"

namespace skiff {

struct NpyHeader {
  DType dtype = DType::kFloat32;
  bool big_endian = false;
  bool fortran_order = false;  // the first dim varies fastest
  std::vector<int64_t> dims;
};

// Reads a header as NumPy does and leaves the source at the first element: other programs and old
// NumPys write `(2L, 3L)`, `u'descr'`, `|f4`, any whitespace, and no line break. Throws Error
// (kDataLoss) for anything else, and (kUnimplemented) for dtypes that Skiff doesn't have.
NpyHeader ReadNpyHeader(ByteSource* source);
// Returns a header of version 1.0, padded to a multiple of 64 bytes. Throws Error (kUnimplemented)
// for bfloat16.
std::string NpyHeaderBytes(DType dtype, const Shape& shape);

}  // namespace skiff
