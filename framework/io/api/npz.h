// NumPy's files: one array (.npy, versions 1.0 to 3.0) and zip archives of arrays (.npz).
//
// Supported are bool, int8, uint8, int16, int32, int64, float16, float32 and float64, and nothing
// else of NumPy: no objects, no structures, no pickles. Reads both byte orders, C order and Fortran
// order, and the headers that NumPy reads; writes little-endian, in C order.
//
// NumPy has no LoD. In an archive, `x.lod0`, `x.lod1`, … are the offsets of a ragged `x`
// (lod_entries.h): numpy.savez("a.npz", **{"x": rows, "x.lod0": offsets}) writes one.
#pragma once

#include <cstdint>
#include <string>

#include "framework/io/api/tensor_map.h"
#include "framework/tensor/api/tensor.h"

namespace skiff {

// By how much the arrays of an archive may exceed the size of the file: a few compressed megabytes
// can become gigabytes. Archives that aren't compressed may have any size.
inline constexpr int64_t kNpzLimitBytes = int64_t{1} << 32;

struct ReadNpzOptions {
  ArrayNames names = {};  // the LoDs of these are read, too
  int64_t limit_bytes = kNpzLimitBytes;
};

// Reads an archive: tensors by name, without the `.npy` of the entries. Throws Error
// - (kNotFound, kIo) as InputFile,
// - as EntriesOf for a name that the archive doesn't have,
// - (kDataLoss) for anything but a .npz: not a zip archive, a CRC that doesn't match, an entry
//   without `.npy`, an entry twice, overlapping entries, an entry that isn't exactly an array; and
//   as TakeLoDEntries,
// - (kUnimplemented) for other dtypes,
// - (kOutOfRange), before reading an array, if they exceed the size of the file by more than
//   `limit_bytes`.
TensorMap ReadNpz(const std::string& path, const ReadNpzOptions& options = {});
// Writes an archive atomically, with entries stored or deflated. Equal tensors give equal bytes.
// Throws Error as AtomicFile and WithLoDEntries, (kUnimplemented) for bfloat16, which NumPy doesn't
// have, (kFailedPrecondition) for a tensor without storage or of a blocked layout, and
// (kOutOfRange) if `compress` is set for more than kNpzLimitBytes, which ReadNpz might refuse.
void WriteNpz(const std::string& path, const TensorMap& tensors, bool compress = false);

// Read and write a file of a single array. Errors as above, and
// (kFailedPrecondition) for a ragged tensor, whose LoD has no place in the file.
Tensor ReadNpyFile(const std::string& path);
void WriteNpyFile(const std::string& path, const Tensor& tensor);

}  // namespace skiff
