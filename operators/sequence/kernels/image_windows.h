// The windows of im2sequence.
#pragma once

#include <cstdint>

#include "framework/op/op_context.h"

namespace skiff {

// One axis of the windows of an image.
struct WindowAxis {
  int64_t size = 0;  // of the image, -1 if unknown
  int64_t kernel = 0;
  int64_t stride = 0;
  int64_t before = 0;  // padding
  int64_t windows = 0;

  constexpr int64_t FirstOf(int64_t window) const { return window * stride - before; }
};

struct ImageWindows {
  int64_t channels = 0;
  WindowAxis y;
  WindowAxis x;

  constexpr int64_t per_image() const { return y.windows * x.windows; }
  constexpr int64_t width() const { return channels * y.kernel * x.kernel; }
};

// Returns the windows that the attributes describe; counts are -1 where X's dims are. Throws Error
// (kInvalidArgument) for an attribute or an X that is none.
ImageWindows ImageWindowsOf(const OpContext& context);

}  // namespace skiff
