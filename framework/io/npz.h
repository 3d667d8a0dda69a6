// NumPy's files: one array (.npy, versions 1.0 to 3.0) and zip archives of arrays (.npz).
//
// Read and written: bool, int8, uint8, int16, int32, int64, float16, float32 and float64,
// little-endian, in C order. Nothing else of NumPy's is: no objects, no structures, no pickles.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "framework/io/byte_stream.h"
#include "framework/tensor/tensor.h"

namespace skiff {

// By name, without the `.npy` of the archive's entries.
using TensorMap = std::map<std::string, Tensor>;

// An archive that says it holds more than this is refused, for compression can pretend anything.
inline constexpr int64_t kNpzLimitBytes = int64_t{1} << 36;

// Error: kNotFound or kIo as InputFile; kDataLoss for what isn't a .npz (not a zip archive, a CRC
// that doesn't match, an entry without `.npy`, an entry twice, one that isn't exactly an array);
// kUnimplemented for Fortran order and other dtypes; kOutOfRange for more than `limit_bytes`
// uncompressed. LoD isn't part of the format.
TensorMap ReadNpz(const std::string& path, int64_t limit_bytes = kNpzLimitBytes);
// Atomically. Entries are stored as they are, or deflated. Equal tensors give equal bytes. Error as
// AtomicFile; kUnimplemented for bfloat16, which NumPy doesn't have; kFailedPrecondition for a
// tensor without storage or of a blocked layout.
void WriteNpz(const std::string& path, const TensorMap& tensors, bool compress = false);

// A single array; the source must end with it. Errors as above.
Tensor ReadNpy(ByteSource* source);
Tensor ReadNpyFile(const std::string& path);
void WriteNpyFile(const std::string& path, const Tensor& tensor);

}  // namespace skiff
