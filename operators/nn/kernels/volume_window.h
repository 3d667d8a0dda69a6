// Batches of volumes, [N, C, D, H, W] or [N, D, H, W, C], and the windows that slide over them.
// Images are volumes of depth 1, so the same loops serve both.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/op/op_context.h"
#include "framework/op/op_def.h"
#include "framework/tensor/shape.h"
#include "operators/nn/kernels/image_window.h"

namespace skiff {

// The depth, the height and the width, in this order.
using VolumeExtents = std::array<int64_t, 3>;

// The number of axes that an op's volumes have: 2 for images, else 3.
enum class VolumeAxes { kImage = 2, kVolume = 3 };
inline constexpr const char* kVolumeAxisNames[] = {"depth", "height", "width"};
constexpr size_t AxisCount(VolumeAxes axes) { return static_cast<size_t>(axes); }
// Returns the index of an op's first axis in VolumeExtents.
constexpr size_t FirstAxis(VolumeAxes axes) { return 3 - AxisCount(axes); }

// The dims of a batch, in whatever order they are stored. -1: unknown.
struct VolumeDims {
  int64_t batch = 0;
  int64_t channels = 0;
  VolumeExtents size{1, 1, 1};

  // The number of elements of a channel.
  int64_t points() const { return size[0] * size[1] * size[2]; }
  int64_t count() const { return batch * channels * points(); }
};

// The distances between neighbouring indices, in elements.
struct VolumeStrides {
  int64_t batch = 0;
  int64_t channel = 0;
  VolumeExtents size{};
};

// Returns the order that the attribute says: NCHW or NHWC for images, NCDHW or NDHWC for volumes,
// or "AnyLayout" of old programs, channels first. Throws Error for anything else.
ChannelOrder ParseVolumeOrder(const OpContext& context, std::string_view attribute,
                              VolumeAxes axes);
AttrDef VolumeOrderAttr(StaticText name, VolumeAxes axes);

// Returns the dims of a batch. Throws Error that names `slot` for a shape of another rank.
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
  // Returns the number of points that the kernel covers along an axis. Throws Error for an
  // overflow.
  int64_t reach(size_t axis) const { return MultiplyCounts(dilation[axis], kernel[axis] - 1) + 1; }
};

// Returns the values of an attribute, one for each axis, and 1 for the depth of images. Throws
// Error for another number of values and for values below 1.
VolumeExtents ParseVolumeExtents(const OpContext& context, std::string_view name, VolumeAxes axes);

// Returns the window that strides, paddings (for each axis one value, or two: before and after) and
// padding_algorithm say, with `dilation`. SAME pads the input so that the output has
// ceil(input / stride) points, and sets the dilation to 1, as in Fluid; if a size is unknown (-1),
// the padding is 0. Throws Error for a wrong number or sign of values.
VolumeWindow ParseVolumeWindow(const OpContext& context, VolumeAxes axes,
                               const VolumeExtents& kernel, const VolumeExtents& dilation,
                               const VolumeExtents& input_size);

// Returns the number of windows along an axis of `size` points, or -1 if something is unknown.
// `round_up` keeps a last window that is only partly on the input. Throws Error if the window
// doesn't fit.
int64_t VolumeWindowCount(const OpContext& context, const VolumeWindow& window, size_t axis,
                          int64_t size, bool round_up = false);

}  // namespace skiff
