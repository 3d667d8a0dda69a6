#include "operators/elementwise/kernels/prelu_alpha.h"

#include <string>

namespace skiff {
namespace {

// Returns the axis of the channels.
int ChannelAxis(const OpContext& context) {
  return context.Attr<std::string>("data_format") == "NHWC" ? context.Input("X").shape.rank() - 1
                                                            : 1;
}

}  // namespace

AlphaAxes AlphaAxesOf(const OpContext& context) {
  const std::string& mode = context.Attr<std::string>("mode");
  AlphaAxes axes{};
  for (int axis = 0; axis < context.Input("X").shape.rank(); ++axis) {
    const bool is_kept = mode == "channel" ? axis == ChannelAxis(context) : axis > 0;
    axes[static_cast<size_t>(axis)] = mode != "all" && is_kept;
  }
  return axes;
}

Shape AlphaShape(const Shape& x, const AlphaAxes& axes) {
  Shape shape;
  for (int axis = 0; axis < x.rank(); ++axis) {
    shape.Append(axes[static_cast<size_t>(axis)] ? x[axis] : 1);
  }
  return shape;
}

Broadcast BroadcastOfAlpha(const Shape& x, const AlphaAxes& axes) {
  return Broadcast(x, AlphaShape(x, axes), -1, "prelu");
}

}  // namespace skiff
