#include "operators/nn/kernels/volume_window.h"

#include <cstdint>
#include <string>

#include "framework/base/error.h"
#include "operators/nn/kernels/window_values.h"

namespace skiff {
namespace {

void CheckValues(const OpContext& context, std::string_view name,
                 const std::vector<int64_t>& values, int64_t least) {
  SKIFF_ENFORCE(AreWindowValues(values, least), kInvalidArgument, context.op().type, ": ", name,
                " = [", Join(values, ", "), "], expected values from ", least, " to ",
                kLargestWindowValue);
}

void ParsePaddings(const OpContext& context, VolumeAxes axes, VolumeWindow* window) {
  const std::vector<int64_t> values = context.IntsAttr("paddings");
  const size_t count = AxisCount(axes);
  SKIFF_ENFORCE(values.size() == count || values.size() == 2 * count, kInvalidArgument,
                context.op().type, ": paddings = [", Join(values, ", "), "], expected ", count,
                " values, one per axis, or ", 2 * count, ", before and after each");
  CheckValues(context, "paddings", values, 0);
  SetPaddings(values, FirstAxis(axes), count, window);
}

}  // namespace

ChannelOrder ParseVolumeOrder(const OpContext& context, std::string_view attribute,
                              VolumeAxes axes) {
  if (axes == VolumeAxes::kImage) return ParseChannelOrder(context, attribute);
  const std::string& value = context.Attr<std::string>(attribute);
  const bool is_order = value == "NCDHW" || value == "NDHWC" || value == kAnyChannelOrder;
  SKIFF_ENFORCE(is_order, kInvalidArgument, context.op().type, ": ", attribute, " = \"", value,
                "\", expected NCDHW or NDHWC");
  return value == "NDHWC" ? ChannelOrder::kLast : ChannelOrder::kFirst;
}

AttrDef VolumeOrderAttr(StaticText name, VolumeAxes axes) {
  if (axes == VolumeAxes::kImage) return ChannelOrderAttr(name);
  return {.name = name,
          .type = AttrType::kString,
          .default_value = std::string("NCDHW"),
          .doc = "NCDHW or NDHWC: where volumes have their channels."};
}

VolumeDims VolumeOf(const OpContext& context, std::string_view slot, const Shape& shape,
                    ChannelOrder order, VolumeAxes axes) {
  const auto count = static_cast<int>(AxisCount(axes));
  const bool is_first = order == ChannelOrder::kFirst;
  SKIFF_ENFORCE(shape.rank() == count + 2, kInvalidArgument, context.op().type, ": ", slot,
                " of shape ", shape, ", expected rank ", count + 2, ", ",
                is_first ? "channels first" : "channels last");
  VolumeDims dims;
  dims.batch = shape[0];
  dims.channels = shape[is_first ? 1 : count + 1];
  for (int i = 0; i < count; ++i) {
    dims.size[FirstAxis(axes) + static_cast<size_t>(i)] = shape[i + (is_first ? 2 : 1)];
  }
  return dims;
}

Shape ShapeOf(const VolumeDims& volume, ChannelOrder order, VolumeAxes axes) {
  Shape shape = {volume.batch};
  if (order == ChannelOrder::kFirst) shape.Append(volume.channels);
  for (size_t axis = FirstAxis(axes); axis < 3; ++axis) shape.Append(volume.size[axis]);
  if (order == ChannelOrder::kLast) shape.Append(volume.channels);
  return shape;
}

VolumeStrides StridesOf(const VolumeDims& volume, ChannelOrder order) {
  const int64_t step = order == ChannelOrder::kFirst ? 1 : volume.channels;
  return {volume.channels * volume.points(),
          order == ChannelOrder::kFirst ? volume.points() : 1,
          {volume.size[1] * volume.size[2] * step, volume.size[2] * step, step}};
}

VolumeExtents ParseVolumeExtents(const OpContext& context, std::string_view name, VolumeAxes axes) {
  const std::vector<int64_t> values = context.IntsAttr(name);
  SKIFF_ENFORCE(values.size() == AxisCount(axes), kInvalidArgument, context.op().type, ": ", name,
                " = [", Join(values, ", "), "], expected ", AxisCount(axes),
                " values, one per axis");
  CheckValues(context, name, values, 1);
  // The depth of images, which has no attribute, keeps the 1.
  VolumeExtents extents{1, 1, 1};
  for (size_t i = 0; i < values.size(); ++i) extents[FirstAxis(axes) + i] = values[i];
  return extents;
}

VolumeWindow ParseVolumeWindow(const OpContext& context, VolumeAxes axes,
                               const VolumeExtents& kernel, const VolumeExtents& dilation,
                               const VolumeExtents& input_size) {
  VolumeWindow window{.kernel = kernel,
                      .stride = ParseVolumeExtents(context, "strides", axes),
                      .dilation = dilation};
  const std::string& algorithm = context.Attr<std::string>("padding_algorithm");
  if (algorithm == "SAME") {
    // The depth of images has window 1 and stays unpadded.
    PadToSame(input_size, &window);
  } else if (algorithm != "VALID") {
    SKIFF_ENFORCE(algorithm == "EXPLICIT", kInvalidArgument, context.op().type,
                  ": padding_algorithm = \"", algorithm, "\", expected EXPLICIT, SAME or VALID");
    ParsePaddings(context, axes, &window);
  }
  return window;
}

int64_t VolumeWindowCount(const OpContext& context, const VolumeWindow& window, size_t axis,
                          int64_t size, bool round_up) {
  if (size < 0 || window.kernel[axis] < 0) return -1;
  const int64_t reach = window.reach(axis);
  const int64_t room = size + window.pad_begin[axis] + window.pad_end[axis] - reach;
  SKIFF_ENFORCE(room >= 0 || size == 0, kInvalidArgument, context.op().type, ": a window of ",
                reach, " points does not fit the input's ", kVolumeAxisNames[axis], " of ", size,
                " padded by ", window.pad_begin[axis], " and ", window.pad_end[axis]);
  // Here the input is empty: it may have no window at all.
  if (room < 0) return 0;
  return (room + (round_up ? window.stride[axis] - 1 : 0)) / window.stride[axis] + 1;
}

}  // namespace skiff
