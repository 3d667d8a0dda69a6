#include "framework/tensor/layout.h"

#include "framework/base/element_count.h"
#include "framework/base/error.h"

namespace skiff {

int64_t StorageElements(const Shape& shape, Layout layout) {
  if (layout.is_plain()) return shape.element_count();
  SKIFF_ENFORCE(shape.rank() >= 2, kInvalidArgument, "layout ", layout, " of shape ", shape,
                ": expected rank 2 or more");
  SKIFF_ENFORCE(shape.is_known(), kInvalidArgument, "layout ", layout, " of shape ", shape,
                ": expected known dims");
  Shape blocks = shape;
  blocks[1] = shape[1] / layout.channel_block + (shape[1] % layout.channel_block != 0);
  return MultiplyCounts(blocks.element_count(), layout.channel_block);
}

std::ostream& operator<<(std::ostream& stream, Layout layout) {
  if (layout.is_plain()) return stream << "plain";
  return stream << "blocked" << layout.channel_block;
}

}  // namespace skiff
