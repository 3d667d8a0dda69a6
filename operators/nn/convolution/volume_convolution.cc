#include "operators/nn/convolution/volume_convolution.h"

#include <string>

#include "framework/base/element_count.h"
#include "framework/base/error.h"

namespace skiff {

VolumeConvolution VolumeConvolutionOf(const Convolution& convolution) {
  VolumeConvolution conv{.groups = convolution.groups, .order = convolution.order};
  const auto volume_of = [](const ImageDims& image) {
    return VolumeDims{.batch = image.batch,
                      .channels = image.channels,
                      .size = {1, image.size[0], image.size[1]}};
  };
  conv.input = volume_of(convolution.input);
  conv.output = volume_of(convolution.output);
  for (size_t axis = 0; axis < 2; ++axis) {
    conv.window.kernel[axis + 1] = convolution.window.kernel[axis];
    conv.window.stride[axis + 1] = convolution.window.stride[axis];
    conv.window.dilation[axis + 1] = convolution.window.dilation[axis];
    conv.window.pad_begin[axis + 1] = convolution.window.pad_begin[axis];
    conv.window.pad_end[axis + 1] = convolution.window.pad_end[axis];
  }
  return conv;
}

VolumeConvolution ParseVolumeConvolution(const OpContext& context) {
  const std::string& type = context.op().type;
  VolumeConvolution conv;
  conv.order = ParseVolumeOrder(context, "data_format", VolumeAxes::kVolume);
  conv.groups = context.IntAttr("groups");
  conv.input =
      VolumeOf(context, "Input", context.Input("Input").shape, conv.order, VolumeAxes::kVolume);
  const Shape& filter = context.Input("Filter").shape;
  SKIFF_ENFORCE(filter.rank() == 5, kInvalidArgument, type, ": Filter of shape ", filter,
                ", expected [output channels, input channels / groups, depth, height, width]");
  SKIFF_ENFORCE(filter[2] != 0 && filter[3] != 0 && filter[4] != 0, kInvalidArgument, type,
                ": Filter of shape ", filter, ", expected extents of at least 1");
  SKIFF_ENFORCE(conv.groups >= 1 && (filter[0] == -1 || filter[0] % conv.groups == 0),
                kInvalidArgument, type, ": groups = ", conv.groups, ", expected a divisor of the ",
                filter[0], " output channels");
  const int64_t channels = filter[1] == -1 ? -1 : MultiplyCounts(filter[1], conv.groups);
  SKIFF_ENFORCE(conv.input.channels == -1 || channels == -1 || conv.input.channels == channels,
                kInvalidArgument, type, ": Input has ", conv.input.channels, " channels, expected ",
                channels, " for Filter of shape ", filter, " and groups = ", conv.groups);
  SKIFF_ENFORCE(context.Input("Filter").dtype == context.Input("Input").dtype, kInvalidArgument,
                type, ": Filter is ", context.Input("Filter").dtype, ", expected that of Input, ",
                context.Input("Input").dtype);
  // The shape rule also runs while a program is built, with dims that are still unknown.
  if (conv.input.channels == -1) conv.input.channels = channels;
  conv.window = ParseVolumeWindow(context, VolumeAxes::kVolume, {filter[2], filter[3], filter[4]},
                                  ParseVolumeExtents(context, "dilations", VolumeAxes::kVolume),
                                  conv.input.size);
  conv.output = {.batch = conv.input.batch, .channels = filter[0]};
  for (size_t axis = 0; axis < 3; ++axis) {
    conv.output.size[axis] = VolumeWindowCount(context, conv.window, axis, conv.input.size[axis]);
  }
  return conv;
}

}  // namespace skiff
