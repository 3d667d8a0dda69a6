// Arrays of tensors: lists that loops fill and read, element by element. Errors of all layers:
// layers.h.
//
// An array is empty when a run begins; an array that the body of a loop makes is empty when an
// iteration begins. All elements have one dtype and rank; rows and LoD may differ. Gradients flow
// through arrays: the gradient of an element is the sum over all reads.
#pragma once

#include <cstdint>

#include "framework/base/dtype.h"
#include "framework/builder/layers.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

// Returns a new array in the current block.
Variable CreateArray(DType dtype, Site site = Site::current());

// Makes a copy of x the element `index`, one int64 of at least 0, of the array.
void ArrayWrite(const Variable& x, const Variable& index, const Variable& array,
                Site site = Site::current());
// Returns a copy of element `index`. A run throws an Error (kInvalidArgument) if no op before
// writes to the array, and one (kOutOfRange) if the array has no such element.
Variable ArrayRead(const Variable& array, const Variable& index, Site site = Site::current());
// Returns the largest index that has an element, plus 1: int64 [1].
Variable ArrayLength(const Variable& array, Site site = Site::current());

struct ArrayToTensorOptions {
  int64_t axis = 0;    // negative from the back
  bool stack = false;  // along a new axis
};
// Returns all elements, joined along the axis. The elements must be there from 0 on, and differ
// only in the extent at the axis. The ops that follow are planned when the number of elements is
// known; no gradient flows from there into a loop that has written the array.
Variable ArrayToTensor(const Variable& array, const ArrayToTensorOptions& options = {},
                       Site site = Site::current());
// Returns an array of the parts of x along dim 0, which must be known.
Variable TensorToArray(const Variable& x, Site site = Site::current());

// Arrays of time steps. Functions with a table throw an Error (kInvalidArgument) if `table` isn't a
// rank table. A rank table lists the sequences of a ragged variable, the longest one first; element
// t of an array has row t of each sequence that is longer than t, in that order.

// Returns the rank table of x, int64 [sequences, 3]: number, length and first row of each sequence
// of the lowest LoD level.
Variable LodRankTable(const Variable& x, Site site = Site::current());
// Returns the length of the longest sequence, int64 [1].
Variable MaxSequenceLength(const Variable& table, Site site = Site::current());
// Returns the time steps of x, whose sequences have the lengths in the table.
Variable LodTensorToArray(const Variable& x, const Variable& table, Site site = Site::current());
// The inverse. The result has the LoD of the variable that the table ranks.
Variable ArrayToLodTensor(const Variable& array, const Variable& table,
                          Site site = Site::current());
// Returns the sequences of x, or the rows of a dense x, in the order of the table.
Variable ReorderByRank(const Variable& x, const Variable& table, Site site = Site::current());
// x has a row or a sequence for each sequence, in the order of the table. Returns the rows or
// sequences of x for the sequences that are longer than `index`, one int64.
Variable ShrinkByRank(const Variable& x, const Variable& table, const Variable& index,
                      Site site = Site::current());

}  // namespace skiff::layers
