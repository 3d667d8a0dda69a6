#include "operators/sequence/kernels/sequence_rows.h"

#include <algorithm>

#include "framework/base/error.h"

namespace skiff {

int64_t SequenceCount(const OpContext& context, std::string_view slot) {
  const LoD* lod = context.InputLoD(slot);
  return lod == nullptr ? -1 : SequenceRows(lod->back()).size();
}

int64_t OneLevelSequenceCount(const OpContext& context, std::string_view slot) {
  const int32_t levels = context.Input(slot).lod_level;
  SKIFF_ENFORCE(levels <= 1, kInvalidArgument, context.op().type, ": input \"", slot, "\" has ",
                levels, " LoD levels, expected 1");
  return SequenceCount(context, slot);
}

void DeclareLoDLevel(OpContext& context, std::string_view slot, int32_t levels) {
  const int index = context.OutputIndex(slot);
  if (index < 0) return;
  TensorMeta& output = context.mutable_outputs()[static_cast<size_t>(index)];
  output.lod_level = levels;
  output.lod = nullptr;
}

int64_t SequenceGrain(int64_t sequences, int64_t elements) {
  constexpr int64_t kGrainElements = 16384;
  const int64_t elements_each = elements / std::max<int64_t>(sequences, 1);
  return std::max<int64_t>(1, kGrainElements / std::max<int64_t>(elements_each, 1));
}

Shape WithRows(Shape shape, int64_t rows) {
  shape[0] = rows;
  return shape;
}

int64_t RowWidth(const OpContext& context, std::string_view slot) {
  const Shape& shape = context.Input(slot).shape;
  SKIFF_ENFORCE(shape.rank() >= 1, kInvalidArgument, context.op().type, ": ", slot,
                " has rank 0, expected rows");
  int64_t width = 1;
  for (int axis = 1; axis < shape.rank(); ++axis) {
    if (shape[axis] < 0) return -1;
    width *= shape[axis];
  }
  return width;
}

}  // namespace skiff
