// The sequences of ops on tags: ragged or, if the op has an input with their lengths, padded to one
// length.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "framework/op/arguments.h"
#include "framework/op/op_context.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {

// The rows of each sequence. Padded sequences are [sequences, padded, …]; the rows are numbered as
// those of [sequences * padded, …]. Valid as long as the tensors.
class TagSequences {
 public:
  // lengths: nullptr if `rows` is ragged.
  TagSequences(const Tensor& rows, const int64_t* lengths)
      : ragged_(lengths == nullptr ? SequenceRows(rows)
                                   : SequenceRows(std::span<const uint64_t>())),
        lengths_(lengths),
        count_(lengths == nullptr ? ragged_.size() : rows.shape()[0]),
        padded_(lengths == nullptr ? 0 : rows.shape()[1]) {}

  int64_t size() const { return count_; }
  RowRange operator[](int64_t i) const {
    if (lengths_ == nullptr) return ragged_[i];
    return {i * padded_, i * padded_ + lengths_[i]};
  }

 private:
  SequenceRows ragged_;
  const int64_t* lengths_;
  int64_t count_;
  int64_t padded_;
};

// The sequences of an input, for kernels on the CPU.
class TagSequenceInput {
 public:
  TagSequenceInput(const OpContext& context, std::string_view slot, std::string_view length_slot)
      : op_(context.op().type), rows_(context, slot), length_(context, length_slot) {}

  // Throws Error (kOutOfRange) for a length that isn't 0 to the padded length.
  TagSequences operator()(const KernelContext& run) const;

 private:
  std::string op_;
  In<> rows_;
  In<int64_t> length_;
};

// For shape rules. Returns the number of sequences of an input, -1 while a program is built and it
// isn't known. Throws Error (kInvalidArgument) unless the input is ragged with one level or, if the
// op has `length_slot`, of rank 2 or more with an int64 for each item of dim 0 in that slot.
int64_t TagSequenceCount(const OpContext& context, std::string_view slot,
                         std::string_view length_slot);

// For shape rules. Throws Error (kInvalidArgument) unless the input has an int64 for each row of
// `rows`: ragged rows [n, …] have [n] or [n, 1], padded rows [sequences, padded, …] have
// [sequences, padded] or [sequences, padded, 1].
void CheckTags(const OpContext& context, std::string_view slot, const Shape& rows, bool is_padded);

// Throws Error (kInvalidArgument) unless the LoDs of inputs `a` and `b`, both ragged, are equal.
void CheckSameSequences(std::string_view op, std::string_view a, const LoD& lod_a,
                        std::string_view b, const LoD& lod_b);
// For shape rules: has each run check this of the two inputs, if both are ragged. `output` is one
// that has an item for each sequence, and no LoD.
void RequireSameSequences(OpContext& context, std::string_view output, std::string_view a,
                          std::string_view b);

// Throws the Errors (kOutOfRange) for a length that a sequence can't have, and for a tag of a row
// that is none of `tags`.
[[noreturn]] void ThrowTagLength(std::string_view op, int64_t sequence, int64_t length,
                                 int64_t padded);
[[noreturn]] void ThrowTag(std::string_view op, std::string_view slot, int64_t row, int64_t tag,
                           int64_t tags);

// Throws that Error for the first row of a sequence whose tag isn't in [0, tags).
void CheckTagsOfRows(std::string_view op, std::string_view slot, const TagSequences& sequences,
                     const int64_t* values, int64_t tags);

}  // namespace skiff
