// Ragged tensors whose sequences have lengths that are data of another tensor.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/tensor/tensor.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {

// Calls body(i, rows of sequence i) for sequences [begin, end), if sequences of these lengths
// follow each other.
template <typename Body>
void ForEachSequence(std::span<const int64_t> lengths, int64_t begin, int64_t end,
                     const Body& body) {
  int64_t row = std::accumulate(lengths.begin(), lengths.begin() + begin, int64_t{0});
  for (int64_t i = begin; i < end; ++i) {
    const RowRange rows{row, row + lengths[static_cast<size_t>(i)]};
    body(i, rows);
    row = rows.end;
  }
}

// Returns a ragged tensor of sequences of these lengths; dim 0 of `shape` doesn't count.
inline Tensor MakeRagged(const Shape& shape, DType dtype, std::span<const int64_t> lengths) {
  LoD lod = {OffsetsOf(lengths)};
  Tensor tensor(WithRows(shape, static_cast<int64_t>(lod[0].back())), dtype);
  tensor.set_lod(std::move(lod));
  return tensor;
}

// Throws the Error for a gradient, input Out@GRAD of `op`, of other rows than the lengths add up
// to.
[[noreturn]] inline void ThrowGradientRows(const std::string& op, int64_t found, int64_t expected) {
  Throw(ErrorCode::kInvalidArgument, op, ": Out@GRAD has ", found,
        " rows, expected the sum of Length, ", expected);
}

// Throws Error (kInvalidArgument) unless the lengths add up to the rows of `gradient`, which input
// Out@GRAD of `op` is.
inline void CheckGradientRows(const std::string& op, const Tensor& gradient,
                              std::span<const int64_t> lengths) {
  const int64_t rows = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  if (rows != gradient.shape()[0]) ThrowGradientRows(op, gradient.shape()[0], rows);
}

// Throws the Error for a sequence of `op` that has another number of rows than it may have, 0 to
// `padded`.
[[noreturn]] inline void ThrowPaddedLength(const std::string& op, int64_t i, int64_t length,
                                           int64_t padded) {
  Throw(ErrorCode::kOutOfRange, op, ": sequence ", i, " has length ", length,
        ", expected at least 0 and at most dim 1 of X, ", padded);
}

// Throws Error (kOutOfRange) unless sequence i has such a length.
inline void CheckPaddedLength(const std::string& op, int64_t i, int64_t length, int64_t padded) {
  if (length < 0 || length > padded) ThrowPaddedLength(op, i, length, padded);
}

}  // namespace skiff
