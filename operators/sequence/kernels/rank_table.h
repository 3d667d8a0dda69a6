// The rank table of a ragged tensor: the sequences, the longest first.
//
// As a tensor it is int64 [sequences, 3]: the number of a sequence, the length, and the first row.
// Of sequences with the same length, the smaller number comes first. In a plan,
// TensorMeta::shape_lod is the LoD of the tensor whose lowest level the table ranks.
//
// Loops over time run the sequences side by side in this order. Step t has the rows of all
// sequences that are longer than t, which are the first ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/op_context.h"
#include "framework/tensor/tensor.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {

class RankTable {
 public:
  // `table` must outlive the object. A program may say of any tensor that it is a rank table: a
  // kernel that goes by the rows in the table must check them (CheckRowsWithin).
  explicit RankTable(const Tensor& table) : entries_(table.values<int64_t>()) {}

  // Throws an Error (kInvalidArgument) unless the sequences are in the order of ranks and in the
  // first `count` rows of a tensor.
  void CheckRowsWithin(int64_t count) const {
    for (int64_t rank = 0; rank < size(); ++rank) {
      const int64_t begin = Entry(rank, 2);
      const bool is_within =
          length(rank) >= 0 && begin >= 0 && begin <= count && length(rank) <= count - begin;
      SKIFF_ENFORCE(is_within && IsInOrder(rank), kInvalidArgument, "RankTable has the entry [",
                    sequence(rank), ", ", length(rank), ", ", begin, "] at ", rank,
                    ", expected what lod_rank_table makes of sequences with ", count, " rows");
    }
  }

  // Returns whether this is the table of the sequences with these offsets.
  bool Ranks(std::span<const uint64_t> offsets) const {
    const SequenceRows sequences(offsets);
    bool fits = size() == sequences.size();
    for (int64_t rank = 0; rank < size() && fits; ++rank) {
      const int64_t number = sequence(rank);
      fits = IsInOrder(rank) && number >= 0 && number < size() &&
             Entry(rank, 2) == sequences[number].begin && length(rank) == sequences[number].count();
    }
    return fits;
  }

  // Returns the number of sequences.
  int64_t size() const { return static_cast<int64_t>(entries_.size()) / kColumns; }
  // Return the table's entries for the sequence of this rank.
  int64_t sequence(int64_t rank) const { return Entry(rank, 0); }
  int64_t length(int64_t rank) const { return Entry(rank, 1); }
  // Returns the rows of that sequence in the ragged tensor.
  RowRange rows(int64_t rank) const {
    const int64_t begin = Entry(rank, 2);
    return {begin, begin + length(rank)};
  }

  // Returns the length of the longest sequence, 0 if there is none.
  int64_t step_count() const { return size() == 0 ? 0 : length(0); }
  // Returns how many sequences are longer than `step`.
  int64_t RowsAt(int64_t step) const {
    int64_t begin = 0;
    int64_t end = size();
    while (begin < end) {
      const int64_t middle = (begin + end) / 2;
      length(middle) > step ? begin = middle + 1 : end = middle;
    }
    return begin;
  }

  static constexpr int64_t kColumns = 3;

 private:
  // In this order no sequence comes twice.
  bool IsInOrder(int64_t rank) const {
    if (rank == 0 || length(rank) < length(rank - 1)) return true;
    return length(rank) == length(rank - 1) && sequence(rank) > sequence(rank - 1);
  }

  int64_t Entry(int64_t rank, int64_t column) const {
    return entries_[static_cast<size_t>(rank * kColumns + column)];
  }

  std::span<const int64_t> entries_;
};

// Sets `order` to the numbers of the sequences in the order of their ranks.
inline void RankSequences(std::span<const uint64_t> offsets, std::vector<int64_t>* order) {
  order->resize(offsets.size() - 1);
  std::iota(order->begin(), order->end(), 0);
  const auto length = [&](int64_t i) {
    return offsets[static_cast<size_t>(i) + 1] - offsets[static_cast<size_t>(i)];
  };
  // Not stable_sort, which takes memory.
  std::ranges::sort(*order, [&](int64_t a, int64_t b) {
    return length(a) != length(b) ? length(a) > length(b) : a < b;
  });
}

// For shape rules: returns the number of sequences in an input that is a rank table, -1 while a
// program is built. Throws an Error (kInvalidArgument) if the input can't be a rank table.
inline int64_t RankTableSize(const OpContext& context) {
  const TensorMeta& table = context.Input("RankTable");
  const bool fits = table.dtype == DType::kInt64 && table.shape.rank() == 2 &&
                    table.shape[1] == RankTable::kColumns;
  SKIFF_ENFORCE(fits, kInvalidArgument, context.op().type, ": RankTable is ", table.dtype, " ",
                table.shape, ", expected what lod_rank_table makes, int64 [sequences, ",
                RankTable::kColumns, "]");
  return table.shape[0];
}

// Does the same for an op that goes by the rows of the sequences: throws in a plan, too, if the
// table isn't one of a tensor of the plan, whose numbers may be any.
inline int64_t OwnRankTableSize(const OpContext& context) {
  const int64_t size = RankTableSize(context);
  SKIFF_ENFORCE(size < 0 || context.Input("RankTable").shape_lod != nullptr, kInvalidArgument,
                context.op().type, ": RankTable isn't what lod_rank_table makes of a tensor");
  return size;
}

// Returns the definition of the input.
inline SlotDef RankTableSlot(bool checks_data = false) {
  return {.name = "RankTable",
          .doc = "What lod_rank_table makes of the sequences.",
          .checks_data = checks_data,
          .on_host = true};
}

}  // namespace skiff
