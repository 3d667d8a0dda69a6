#include "operators/nn/convolution/convolution_geometry.h"

#include "framework/base/element_count.h"
#include "framework/base/error.h"

namespace skiff {

Convolution ParseConvolution(const OpContext& context) {
  const std::string& type = context.op().type;
  Convolution conv;
  conv.order = ParseChannelOrder(context, "data_format");
  conv.groups = context.IntAttr("groups");
  conv.input = ImageOf(context, "Input", context.Input("Input").shape, conv.order);
  const Shape& filter = context.Input("Filter").shape;
  SKIFF_ENFORCE(filter.rank() == 4, kInvalidArgument, type, ": Filter of shape ", filter,
                ": expected [output channels, input channels / groups, height, width]");
  SKIFF_ENFORCE(filter[2] != 0 && filter[3] != 0, kInvalidArgument, type, ": Filter of shape ",
                filter, ": expected a height and width of at least 1");
  SKIFF_ENFORCE(conv.groups >= 1 && (filter[0] == -1 || filter[0] % conv.groups == 0),
                kInvalidArgument, type, ": groups = ", conv.groups, ": expected a divisor of the ",
                filter[0], " output channels");
  const int64_t channels = filter[1] == -1 ? -1 : MultiplyCounts(filter[1], conv.groups);
  SKIFF_ENFORCE(conv.input.channels == -1 || channels == -1 || conv.input.channels == channels,
                kInvalidArgument, type, ": Input has ", conv.input.channels, " channels: expected ",
                channels, " for Filter of shape ", filter, " and groups = ", conv.groups);
  SKIFF_ENFORCE(context.Input("Filter").dtype == context.Input("Input").dtype, kInvalidArgument,
                type, ": Filter is ", context.Input("Filter").dtype, ": expected that of Input, ",
                context.Input("Input").dtype);
  // The shape rule also runs while a program is built, with dims that are still unknown.
  if (conv.input.channels == -1) conv.input.channels = channels;
  conv.window = ParseWindow(context, {filter[2], filter[3]}, ParsePair(context, "dilations"),
                            conv.input.size);
  conv.output = {conv.input.batch,
                 filter[0],
                 {WindowCount(context, conv.window, 0, conv.input.size[0]),
                  WindowCount(context, conv.window, 1, conv.input.size[1])}};
  return conv;
}

}  // namespace skiff
