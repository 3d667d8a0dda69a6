// Ragged tensors whose sequences have lengths that are data of another tensor.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <utility>

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

// Throws Error (kInvalidArgument) unless the lengths add up to the rows of `gradient`, which input
// Out@GRAD of `op` is.
inline void CheckGradientRows(const std::string& op, const Tensor& gradient,
                              std::span<const int64_t> lengths) {
  const int64_t rows = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  SKIFF_ENFORCE(rows == gradient.shape()[0], kInvalidArgument, op, ": Out@GRAD has ",
                gradient.shape()[0], " rows, expected the sum of Length, ", rows);
}

}  // namespace skiff
