// Image batches and the windows that convolution and pooling slide over them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/op/op_context.h"
#include "framework/op/op_def.h"
#include "framework/tensor/shape.h"
#include "operators/common/channel_order.h"

namespace skiff {

// Of oneDNN's adapter, whose header .cu files must not include: nvcc can't read oneDNN's.
struct OnednnWindow;

// The height and the width, in this order.
using Extents = std::array<int64_t, 2>;

// The dims of an image batch, in whatever order they are stored. -1: unknown.
struct ImageDims {
  int64_t batch = 0;
  int64_t channels = 0;
  Extents size{};

  bool is_empty() const { return batch == 0 || channels == 0 || size[0] == 0 || size[1] == 0; }
  // dnnl::memory::dims
  std::vector<int64_t> Nchw() const { return {batch, channels, size[0], size[1]}; }
};

// The distances between neighbouring indices, in elements.
struct ImageStrides {
  int64_t batch = 0;
  int64_t channel = 0;
  Extents size{};
};

// What old programs write for channels first, of images and of volumes.
inline constexpr std::string_view kAnyChannelOrder = "AnyLayout";

// Returns the order that the attribute, data_format or data_layout, says: "NCHW" or "NHWC", or
// kAnyChannelOrder. Throws Error for anything else.
ChannelOrder ParseChannelOrder(const OpContext& context, std::string_view attribute);
AttrDef ChannelOrderAttr(StaticText name);

// Returns the dims of an image batch. Throws Error that names `slot` unless the shape has rank 4.
ImageDims ImageOf(const OpContext& context, std::string_view slot, const Shape& shape,
                  ChannelOrder order);
Shape ShapeOf(const ImageDims& image, ChannelOrder order);
ImageStrides StridesOf(const ImageDims& image, ChannelOrder order);

struct Window {
  Extents kernel{1, 1};
  Extents stride{1, 1};
  Extents dilation{1, 1};
  Extents pad_begin{};
  Extents pad_end{};

  OnednnWindow ForOnednn() const;
};

// Returns the values of an attribute of two ints, for height and width. Throws Error for another
// number of values and for values below 1.
Extents ParsePair(const OpContext& context, std::string_view name);

// Returns the window that strides, paddings (2 values: height and width; 4: top, bottom, left,
// right) and padding_algorithm say, with `dilation`. SAME pads the input so that the output has
// ceil(input / stride) pixels, and sets the dilation to 1, as in Fluid; if the size of input or
// kernel is unknown (-1), the padding is 0. A stride of more than twice the padded input is reduced
// to that, which makes the same windows. Throws Error for a wrong number or sign of values.
Window ParseWindow(const OpContext& context, const Extents& kernel, const Extents& dilation,
                   const Extents& input_size);
// The same of an op without padding_algorithm and dilation.
Window ParsePlainWindow(const OpContext& context, const Extents& kernel, const Extents& input_size);
AttrDef PaddingAlgorithmAttr();

// Returns the number of windows along an axis of `size` pixels, or -1 if `size` or the window's
// size is unknown. `round_up` keeps a last window that is only partly on the input. Throws Error if
// the window doesn't fit.
int64_t WindowCount(const OpContext& context, const Window& window, int axis, int64_t size,
                    bool round_up = false);

struct IndexRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// Returns the output positions o in [0, outputs) with 0 <= o * stride + offset < inputs.
constexpr IndexRange ValidOutputs(int64_t outputs, int64_t inputs, int64_t stride, int64_t offset) {
  const int64_t begin = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  const int64_t last = inputs - 1 - offset;
  const int64_t end = last < 0 ? 0 : last / stride + 1;
  return {begin, end < outputs ? end : outputs};
}

// Returns the number of items that is worth a thread, for ParallelFor.
constexpr int64_t GrainOf(int64_t work_per_item) {
  constexpr int64_t kWorthwhile = 16384;
  if (work_per_item >= kWorthwhile) return 1;
  return work_per_item <= 0 ? kWorthwhile : kWorthwhile / work_per_item;
}

// Returns the definition of an attribute of ints.
AttrDef IntsAttrDef(StaticText name, std::vector<int32_t> default_value, StaticText doc);

}  // namespace skiff
