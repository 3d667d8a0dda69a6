#include "framework/tensor/layout.h"

#include <ostream>

#include "framework/base/element_count.h"
#include "framework/base/error.h"

namespace skiff {
namespace {

void CheckHasRows(const Shape& shape) {
  SKIFF_ENFORCE(shape.rank() > 0, kInvalidArgument, "selected rows of shape ", shape,
                ": expected rank 1 or more");
}

}  // namespace

int64_t StorageElements(const Shape& shape, Layout layout) {
  if (layout.selected_rows) CheckHasRows(shape);
  if (!layout.is_blocked()) return shape.element_count();
  SKIFF_ENFORCE(shape.rank() >= 2, kInvalidArgument, "layout ", layout, " of shape ", shape,
                ": expected rank 2 or more");
  SKIFF_ENFORCE(shape.is_known(), kInvalidArgument, "layout ", layout, " of shape ", shape,
                ": expected known dims");
  Shape blocks = shape;
  // ⌈channels / block⌉ without a sum that could overflow. The last block is padded.
  blocks[1] = shape[1] / layout.channel_block + (shape[1] % layout.channel_block != 0);
  return MultiplyCounts(blocks.element_count(), layout.channel_block);
}

int64_t RowNumbersOffset(const Shape& shape, DType dtype) {
  constexpr int64_t kAlignment = sizeof(int64_t);
  const int64_t bytes = ByteCount(shape.element_count(), dtype);
  // Rounds up the remainder only, since RoundUp(bytes) could overflow.
  return AddCounts(bytes, RoundUp(bytes % kAlignment, kAlignment) - bytes % kAlignment);
}

int64_t StorageBytes(const Shape& shape, DType dtype, Layout layout) {
  const int64_t bytes = ByteCount(StorageElements(shape, layout), dtype);
  if (!layout.selected_rows) return bytes;
  return AddCounts(RowNumbersOffset(shape, dtype), ByteCount(shape[0], DType::kInt64));
}

Shape DenseShape(const Shape& shape, Layout layout) {
  if (!layout.selected_rows) return shape;
  CheckHasRows(shape);
  Shape dense = shape;
  dense[0] = layout.height;
  return dense;
}

namespace internal {

std::string TextOf(Layout layout) {
  if (layout.is_plain()) return "plain";
  if (layout.selected_rows) return StrCat("selected_rows(height ", layout.height, ")");
  return StrCat("blocked", layout.channel_block);
}

std::ostream& operator<<(std::ostream& stream, Layout layout) { return stream << TextOf(layout); }

}  // namespace internal
}  // namespace skiff
