// The rows of ragged values: the place of each row, and padded views. A value that follows from the
// offsets alone is computed once in a graph, for all its readers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/onnx/op_export.h"

namespace skiff::onnx_export {

// Masks are bool, all other values int64. `offsets` is one level, [sequences + 1].

// Return the rows of each sequence, the first one of each, and the number after the last one,
// [sequences].
std::string LengthsOf(OpExport& op, const std::string& offsets);
std::string FirstRowsOf(OpExport& op, const std::string& offsets);
std::string EndsOf(OpExport& op, const std::string& offsets);
// Returns the offsets of sequences of these lengths.
std::string OffsetsOf(OpExport& op, const std::string& lengths);
// Returns the largest element of a vector, of rank 0; 0 if it is empty.
std::string LargestOf(OpExport& op, const std::string& lengths);

struct RowPlaces {
  std::string sequence;  // [rows]: the sequence that the row is in
  std::string position;  // [rows]: its place in the sequence
};
RowPlaces PlacesOf(OpExport& op, const std::string& offsets);

// Sequences side by side, with `steps` rows each.
struct PaddedRows {
  std::string is_row;  // [sequences, steps]
  std::string row;     // [sequences, steps]: the row's number, 0 where there is none
};
// Returns the sequences with as many steps as the longest one has, or with `steps`, a number of
// rank 0.
PaddedRows PaddedRowsOf(OpExport& op, const std::string& offsets);
PaddedRows PaddedRowsOf(OpExport& op, const std::string& offsets, const std::string& steps);

// Returns the rows at these places of x's dim 0.
std::string RowsAt(OpExport& op, const std::string& x, const std::string& rows);
// Returns [sequences, steps, …] of x [rows, …]; the padding holds rows, too.
std::string Padded(OpExport& op, const std::string& x, const std::string& offsets);
// The same as [steps, sequences, …].
std::string PaddedSteps(OpExport& op, const std::string& x, const std::string& offsets);
// Return the rows of x [sequences, steps, …], and of x [steps, sequences, …].
std::string Unpadded(OpExport& op, const std::string& x, const std::string& offsets);
std::string UnpaddedSteps(OpExport& op, const std::string& x, const std::string& offsets);

// Makes rows of input `from` the rows of an output, whose sequences begin at the rows `first` and
// have `lengths` rows.
void SetSequences(OpExport& op, std::string_view from, std::string_view slot,
                  const std::string& first, const std::string& lengths);

// Returns x with dims of 1 behind the `rank` dims that it has, up to `wanted`.
std::string WithDimsBehind(OpExport& op, const std::string& x, int64_t rank, int64_t wanted);

// Returns scores with the least number where the mask is false: its exponential is 0, and a row of
// such numbers alone has no NaN in its softmax.
std::string MaskedScores(OpExport& op, const std::string& mask, const std::string& scores,
                         DType dtype);

// The rows that follow each row at a distance, which may be negative.
struct NeighbourRows {
  std::string is_inside;  // [rows]: whether the sequence has the row
  std::string row;        // [rows]: the row's number, 0 if the row isn't inside
  std::string position;   // [rows]: the place in the sequence, below 0 before the sequence
};
NeighbourRows NeighboursOf(OpExport& op, const std::string& offsets, int64_t distance);

}  // namespace skiff::onnx_export
