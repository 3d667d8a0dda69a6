// Batches of volumes, [N, C, D, H, W] or [N, D, H, W, C], and the windows that slide over them.
// Images are volumes of depth 1, so that one set of loops does for both.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/op/op_context.h"
#include "framework/op/op_def.h"
#include "framework/tensor/shape.h"
#include "operators/nn/image_window_shared.h"

namespace skiff {

// Depth, height and width, in this order.
using VolumeExtents = std::array<int64_t, 3>;

// What an op counts as the axes of a volume: 2 for images, 3.
enum class VolumeAxes { kImage = 2, kVolume = 3 };
inline constexpr const char* kVolumeAxisNames[] = {"depth", "height", "width"};
constexpr size_t AxisCount(VolumeAxes axes) { return static_cast<size_t>(axes); }
// Where the axes of an op begin in VolumeExtents.
constexpr size_t FirstAxis(VolumeAxes axes) { return 3 - AxisCount(axes); }

// The dims of a batch, whatever the order they are stored in. -1: unknown.
struct VolumeDims {
  int64_t batch = 0;
  int64_t channels = 0;
  VolumeExtents size{1, 1, 1};

  // Elements of a channel.
  int64_t points() const { return size[0] * size[1] * size[2]; }
  int64_t count() const { return batch * channels * points(); }
};

// Elements from one index to the next.
struct VolumeStrides {
  int64_t batch = 0;
  int64_t channel = 0;
  VolumeExtents size{};
};

// The attribute `attribute`: NCHW or NHWC for images ("AnyLayout" of old programs is NCHW), NCDHW
// or NDHWC for volumes. Error for anything else.
ChannelOrder ParseVolumeOrder(const OpContext& context, std::string_view attribute,
                              VolumeAxes axes);
AttrDef VolumeOrderAttr(std::string_view name, VolumeAxes axes);

// Error, naming `slot`, for another rank.
VolumeDims VolumeOf(const OpContext& context, std::string_view slot, const Shape& shape,
                    ChannelOrder order, VolumeAxes axes);
Shape ShapeOf(const VolumeDims& volume, ChannelOrder order, VolumeAxes axes);
VolumeStrides StridesOf(const VolumeDims& volume, ChannelOrder order);

struct VolumeWindow {
  VolumeExtents kernel{1, 1, 1};
  VolumeExtents stride{1, 1, 1};
  VolumeExtents dilation{1, 1, 1};
  VolumeExtents pad_begin{};
  VolumeExtents pad_end{};

  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  // What the kernel covers along an axis. Error for an overflow.
  int64_t reach(size_t axis) const { return MultiplyCounts(dilation[axis], kernel[axis] - 1) + 1; }
};

// The values of an attribute, one for each axis, at least 1; 1 for the depth of images.
VolumeExtents ParseVolumeExtents(const OpContext& context, std::string_view name, VolumeAxes axes);

// Reads strides, paddings (one value an axis, or two: in front and behind) and padding_algorithm;
// `dilation` goes into the window, and becomes 1 under SAME, as in Fluid. Under SAME the input is
// padded so that the output has ceil(input / stride) points; where a size is unknown (-1) the
// padding stays 0. Error for a wrong number or sign of values.
VolumeWindow ParseVolumeWindow(const OpContext& context, VolumeAxes axes,
                               const VolumeExtents& kernel, const VolumeExtents& dilation,
                               const VolumeExtents& input_size);

// Points that the window makes of `size` points along an axis; -1 if something is unknown.
// `round_up` keeps a last window that only partly lies on the input. Error if the window doesn't
// fit.
int64_t VolumeWindowCount(const OpContext& context, const VolumeWindow& window, size_t axis,
                          int64_t size, bool round_up = false);

}  // namespace skiff
