#include "operators/sequence/kernels/tag_sequences.h"

#include "framework/base/error.h"
#include "framework/tensor/dims_agree.h"

namespace skiff {

TagSequences TagSequenceInput::operator()(const KernelContext& run) const {
  const Tensor& rows = rows_.tensor(run);
  const int64_t* lengths = length_(run);
  // Lengths of no sequences have no address.
  static constexpr int64_t kNone = 0;
  if (length_.is_there() && lengths == nullptr) lengths = &kNone;
  const int64_t count = length_.is_there() ? rows.shape()[0] : 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t padded = rows.shape()[1];
    if (lengths[i] < 0 || lengths[i] > padded) ThrowTagLength(op_, i, lengths[i], padded);
  }
  return {rows, lengths};
}

int64_t TagSequenceCount(const OpContext& context, std::string_view slot,
                         std::string_view length_slot) {
  if (!context.HasInput(length_slot)) return OneLevelSequenceCount(context, slot);
  const Shape& rows = context.Input(slot).shape;
  SKIFF_ENFORCE(rows.rank() >= 2, kInvalidArgument, context.op().type, ": ", slot, " has shape ",
                rows, ", expected [sequences, length, …] as there is ", length_slot);
  const TensorMeta& length = context.Input(length_slot);
  const Shape& found = length.shape;
  SKIFF_ENFORCE(
      length.dtype == DType::kInt64 && (DimsAgree(found.dims(), Shape{rows[0]}.dims()) ||
                                        DimsAgree(found.dims(), Shape{rows[0], 1}.dims())),
      kInvalidArgument, context.op().type, ": ", length_slot, " is ", length.dtype, " ", found,
      ", expected int64 [", rows[0], "] or [", rows[0], ", 1]");
  return rows[0];
}

void CheckTags(const OpContext& context, std::string_view slot, const Shape& rows, bool is_padded) {
  const TensorMeta& tags = context.Input(slot);
  const Shape flat = is_padded ? Shape{rows[0], rows[1]} : Shape{rows[0]};
  Shape column = flat;
  column.Append(1);
  SKIFF_ENFORCE(tags.dtype == DType::kInt64 && (DimsAgree(tags.shape.dims(), flat.dims()) ||
                                                DimsAgree(tags.shape.dims(), column.dims())),
                kInvalidArgument, context.op().type, ": ", slot, " is ", tags.dtype, " ",
                tags.shape, ", expected int64 ", flat, " or ", column);
}

void CheckSameSequences(std::string_view op, std::string_view a, const LoD& lod_a,
                        std::string_view b, const LoD& lod_b) {
  SKIFF_ENFORCE(lod_a == lod_b, kInvalidArgument, op, ": ", b, " has the LoD [",
                Join(lod_b.back(), ", "), "], expected that of ", a, ", [",
                Join(lod_a.back(), ", "), "]");
}

void RequireSameSequences(OpContext& context, std::string_view output, std::string_view a,
                          std::string_view b) {
  if (context.Input(a).lod_level == 0 || context.Input(b).lod_level == 0) return;
  context.DependOnLoD(output, {a, b},
                      [op = context.op().type, a = std::string(a), b = std::string(b)](
                          std::span<const LoD* const> lods, LoD* lod) {
                        CheckSameSequences(op, a, *lods[0], b, *lods[1]);
                        *lod = *lods[0];
                      });
}

void ThrowTagLength(std::string_view op, int64_t sequence, int64_t length, int64_t padded) {
  Throw(ErrorCode::kOutOfRange, op, ": sequence ", sequence, " has length ", length,
        ", expected at least 0 and at most the padded length, ", padded);
}

void ThrowTag(std::string_view op, std::string_view slot, int64_t row, int64_t tag, int64_t tags) {
  Throw(ErrorCode::kOutOfRange, op, ": row ", row, " of ", slot, " is ", tag,
        ", expected a tag in [0, ", tags, ")");
}

void CheckTagsOfRows(std::string_view op, std::string_view slot, const TagSequences& sequences,
                     const int64_t* values, int64_t tags) {
  for (int64_t i = 0; i < sequences.size(); ++i) {
    const RowRange rows = sequences[i];
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      if (values[row] < 0 || values[row] >= tags) ThrowTag(op, slot, row, values[row], tags);
    }
  }
}

}  // namespace skiff
