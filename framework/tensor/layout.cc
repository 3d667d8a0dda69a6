#include "framework/tensor/layout.h"

#include "framework/base/element_count.h"
#include "framework/base/error.h"

namespace skiff {

int64_t StorageElements(const Shape& shape, Layout layout) {
  if (layout.is_plain()) return shape.element_count();
  SKIFF_ENFORCE(shape.rank() >= 2, kInvalidArgument, "layout ", layout, " of shape ", shape,
                ": expected rank 2 or more");
  Shape padded = shape;
  padded[1] = RoundUp(shape[1], layout.channel_block);
  return padded.element_count();
}

std::ostream& operator<<(std::ostream& stream, Layout layout) {
  if (layout.is_plain()) return stream << "plain";
  return stream << "blocked" << layout.channel_block;
}

}  // namespace skiff
