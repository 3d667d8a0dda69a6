#include "operators/nn/kernels/image_window.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "operators/common/libraries/onednn.h"
#include "operators/nn/kernels/window_values.h"

namespace skiff {
namespace {

void CheckValues(const OpContext& context, std::string_view name,
                 const std::vector<int64_t>& values, int64_t least) {
  SKIFF_ENFORCE(AreWindowValues(values, least), kInvalidArgument, context.op().type, ": ", name,
                " = [", Join(values, ", "), "]: expected values from ", least, " to ",
                kLargestWindowValue);
}

void ParsePaddings(const OpContext& context, Window* window) {
  const std::vector<int64_t> values = context.IntsAttr("paddings");
  SKIFF_ENFORCE(values.size() == 2 || values.size() == 4, kInvalidArgument, context.op().type,
                ": paddings = [", Join(values, ", "),
                "]: expected [height, width] or [top, bottom, left, right]");
  CheckValues(context, "paddings", values, 0);
  SetPaddings(values, 0, 2, window);
}

// Reduces a stride that is larger than twice the padded image. All such strides give the same
// windows, but oneDNN calculates in 32 bits, which the largest strides would overflow. It must be
// twice the image so that a last window of ceil_mode, one step on, also begins after all padding.
void LimitStride(const Extents& input_size, Window* window) {
  for (size_t axis = 0; axis < 2; ++axis) {
    if (input_size[axis] < 0) continue;
    const int64_t padded = window->pad_begin[axis] + input_size[axis] + window->pad_end[axis];
    window->stride[axis] = std::min(window->stride[axis], std::max<int64_t>(2 * padded, 1));
  }
}

constexpr bool IsChannelOrder(std::string_view value) {
  return value == "NCHW" || value == "NHWC" || value == kAnyChannelOrder;
}

}  // namespace

Extents ParsePair(const OpContext& context, std::string_view name) {
  const std::vector<int64_t> values = context.IntsAttr(name);
  SKIFF_ENFORCE(values.size() == 2, kInvalidArgument, context.op().type, ": ", name, " = [",
                Join(values, ", "), "]: expected 2 values, for height and width");
  CheckValues(context, name, values, 1);
  return {values[0], values[1]};
}

ChannelOrder ParseChannelOrder(const OpContext& context, std::string_view attribute) {
  const std::string& value = context.Attr<std::string>(attribute);
  SKIFF_ENFORCE(IsChannelOrder(value), kInvalidArgument, context.op().type, ": ", attribute,
                " = \"", value, "\": expected NCHW or NHWC");
  return value == "NHWC" ? ChannelOrder::kLast : ChannelOrder::kFirst;
}

AttrDef ChannelOrderAttr(StaticText name) {
  return {.name = name,
          .type = AttrType::kString,
          .default_value = std::string("NCHW"),
          .doc = "NCHW or NHWC: where images have their channels."};
}

AttrDef PaddingAlgorithmAttr() {
  return {.name = "padding_algorithm",
          .type = AttrType::kString,
          .default_value = std::string("EXPLICIT"),
          .doc =
              "EXPLICIT: as in paddings; SAME: so that the output has ceil(input / stride) "
              "pixels; VALID: none."};
}

AttrDef IntsAttrDef(StaticText name, std::vector<int32_t> default_value, StaticText doc) {
  return {
      .name = name, .type = AttrType::kInts, .default_value = std::move(default_value), .doc = doc};
}

ImageDims ImageOf(const OpContext& context, std::string_view slot, const Shape& shape,
                  ChannelOrder order) {
  SKIFF_ENFORCE(shape.rank() == 4, kInvalidArgument, context.op().type, ": ", slot, " of shape ",
                shape, ": expected rank 4, ",
                order == ChannelOrder::kFirst ? "[N, C, H, W]" : "[N, H, W, C]");
  if (order == ChannelOrder::kFirst) return {shape[0], shape[1], {shape[2], shape[3]}};
  return {shape[0], shape[3], {shape[1], shape[2]}};
}

Shape ShapeOf(const ImageDims& image, ChannelOrder order) {
  const auto& [height, width] = image.size;
  if (order == ChannelOrder::kFirst) return {image.batch, image.channels, height, width};
  return {image.batch, height, width, image.channels};
}

ImageStrides StridesOf(const ImageDims& image, ChannelOrder order) {
  const auto& [height, width] = image.size;
  const int64_t pixels = height * width;
  if (order == ChannelOrder::kFirst) return {image.channels * pixels, pixels, {width, 1}};
  return {image.channels * pixels, 1, {width * image.channels, image.channels}};
}

OnednnWindow Window::ForOnednn() const {
  const auto dims = [](const Extents& values) { return dnnl::memory::dims{values[0], values[1]}; };
  return {dims(kernel), dims(stride), dims(dilation), dims(pad_begin), dims(pad_end)};
}

Window ParseWindow(const OpContext& context, const Extents& kernel, const Extents& dilation,
                   const Extents& input_size) {
  Window window{.kernel = kernel,
                .stride = ParsePair(context, "strides"),
                .dilation = dilation,
                .pad_begin = {},
                .pad_end = {}};
  const std::string& algorithm = context.Attr<std::string>("padding_algorithm");
  if (algorithm == "SAME") {
    PadToSame(input_size, &window);
  } else if (algorithm != "VALID") {
    SKIFF_ENFORCE(algorithm == "EXPLICIT", kInvalidArgument, context.op().type,
                  ": padding_algorithm = \"", algorithm, "\": expected EXPLICIT, SAME or VALID");
    ParsePaddings(context, &window);
  }
  LimitStride(input_size, &window);
  return window;
}

Window ParsePlainWindow(const OpContext& context, const Extents& kernel,
                        const Extents& input_size) {
  Window window{.kernel = kernel,
                .stride = ParsePair(context, "strides"),
                .dilation = {1, 1},
                .pad_begin = {},
                .pad_end = {}};
  ParsePaddings(context, &window);
  LimitStride(input_size, &window);
  return window;
}

int64_t WindowCount(const OpContext& context, const Window& window, int axis, int64_t size,
                    bool round_up) {
  const auto at = [axis](const Extents& values) { return values[static_cast<size_t>(axis)]; };
  if (size < 0 || at(window.kernel) < 0) return -1;
  // The pixels that a dilated window extends over. Attributes and dims of different tensors meet
  // here, so the product may overflow.
  const int64_t reach = MultiplyCounts(at(window.dilation), at(window.kernel) - 1) + 1;
  const int64_t room = size + at(window.pad_begin) + at(window.pad_end) - reach;
  SKIFF_ENFORCE(room >= 0 || size == 0, kInvalidArgument, context.op().type, ": a window of ",
                reach, " pixels does not fit the input's ", axis == 0 ? "height" : "width", " of ",
                size, " padded by ", at(window.pad_begin), " and ", at(window.pad_end));
  // Here the input is empty: it may have no window at all.
  if (room < 0) return 0;
  return (room + (round_up ? at(window.stride) - 1 : 0)) / at(window.stride) + 1;
}

}  // namespace skiff
