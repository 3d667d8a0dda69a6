#include "operators/sequence/kernels/image_windows.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "framework/base/error.h"

namespace skiff {
namespace {

// Returns an attribute with `count` numbers of at least `least`.
std::vector<int64_t> SizesAttr(const OpContext& context, const char* name, size_t count,
                               int64_t least) {
  std::vector<int64_t> sizes = context.IntsAttr(name);
  const bool legal = sizes.size() == count && std::ranges::all_of(sizes, [&](int64_t size) {
                       return size >= least && size <= std::numeric_limits<int32_t>::max();
                     });
  SKIFF_ENFORCE(legal, kInvalidArgument, context.op().type, ": ", name, " = [", Join(sizes, ", "),
                "], expected ", count, " numbers of at least ", least);
  return sizes;
}

}  // namespace

ImageWindows ImageWindowsOf(const OpContext& context) {
  const std::string& op = context.op().type;
  const Shape& x = context.Input("X").shape;
  // Images without elements may be so many that there is no room for a LoD.
  SKIFF_ENFORCE(x.rank() == 4 && std::ranges::count(x.dims(), 0) == 0, kInvalidArgument, op,
                ": X has shape ", x,
                ", expected [images, channels, height, width], none of them 0");
  const std::vector<int64_t> kernels = SizesAttr(context, "kernels", 2, 1);
  const std::vector<int64_t> strides = SizesAttr(context, "strides", 2, 1);
  const std::vector<int64_t> paddings = SizesAttr(context, "paddings", 4, 0);
  const auto axis = [&](size_t i) {
    WindowAxis result{.size = x[static_cast<int>(i) + 2],
                      .kernel = kernels[i],
                      .stride = strides[i],
                      .before = paddings[i],
                      .windows = -1};
    if (result.size < 0) return result;
    const int64_t padded = result.size + paddings[i] + paddings[i + 2];
    SKIFF_ENFORCE(padded >= result.kernel, kInvalidArgument, op, ": X has shape ", x, ", with ",
                  padded, " padded rows or columns, expected at least the ", result.kernel,
                  " of a window");
    result.windows = (padded - result.kernel) / result.stride + 1;
    return result;
  };
  return {.channels = x[1], .y = axis(0), .x = axis(1)};
}

}  // namespace skiff
