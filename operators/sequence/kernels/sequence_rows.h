// Where the sequences of a ragged argument are: in the rows that its LoD's lowest level says.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "framework/op/op_context.h"
#include "framework/tensor/tensor.h"

namespace skiff {

// Rows [begin, end) of a tensor.
struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;

  constexpr int64_t count() const { return end - begin; }
};

// The sequences of a level of a tensor's LoD, by default of the lowest one. Valid as long as the
// tensor has the LoD.
class SequenceRows {
 public:
  explicit SequenceRows(const Tensor& tensor) : SequenceRows(tensor.lod().back()) {}
  explicit SequenceRows(std::span<const uint64_t> offsets) : offsets_(offsets) {}

  int64_t size() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  RowRange operator[](int64_t i) const {
    const auto at = static_cast<size_t>(i);
    return {static_cast<int64_t>(offsets_[at]), static_cast<int64_t>(offsets_[at + 1])};
  }
  // Returns the sequence that has the row.
  int64_t SequenceOf(int64_t row) const {
    const auto after =
        std::upper_bound(offsets_.begin(), offsets_.end(), static_cast<uint64_t>(row));
    return after - offsets_.begin() - 1;
  }

 private:
  std::span<const uint64_t> offsets_;
};

// Returns the number of sequences in the lowest level of an input's LoD, or -1 while a program is
// built. Throws Error (kInvalidArgument) if the input isn't ragged.
int64_t SequenceCount(const OpContext& context, std::string_view slot);

// The same for an op that takes a single level only: also throws for other levels.
int64_t OneLevelSequenceCount(const OpContext& context, std::string_view slot);

// For shape rules of ops whose rows depend on data: declares that the kernel gives the output an
// LoD of `levels`. The LoD isn't known before the kernel runs.
void DeclareLoDLevel(OpContext& context, std::string_view slot, int32_t levels);

// Returns how many of `sequences` sequences with `elements` elements in all are worth a thread.
int64_t SequenceGrain(int64_t sequences, int64_t elements);

// Returns `shape` with `rows` as its first dim.
Shape WithRows(Shape shape, int64_t rows);

// Returns the elements of a row of an input, -1 if unknown. Throws Error (kInvalidArgument) if it
// has rank 0.
int64_t RowWidth(const OpContext& context, std::string_view slot);

}  // namespace skiff
