#include "operators/nn/pooling/volume_pooling.h"

#include <string>

#include "framework/base/error.h"

namespace skiff {

VolumePooling ParseVolumePooling(const OpContext& context) {
  const std::string& kind = context.Attr<std::string>("pooling_type");
  SKIFF_ENFORCE(kind == "max" || kind == "avg", kInvalidArgument, context.op().type,
                ": pooling_type = \"", kind, "\", expected max or avg");
  VolumePooling pooling;
  pooling.is_max = kind == "max";
  pooling.order = ParseVolumeOrder(context, "data_format", VolumeAxes::kVolume);
  pooling.input =
      VolumeOf(context, "X", context.Input("X").shape, pooling.order, VolumeAxes::kVolume);
  pooling.output = {.batch = pooling.input.batch, .channels = pooling.input.channels};
  if (context.Attr<bool>("global_pooling")) {
    pooling.window.kernel = pooling.input.size;
  } else if (context.Attr<bool>("adaptive")) {
    pooling.adaptive = true;
    pooling.output.size = ParseVolumeExtents(context, "ksize", VolumeAxes::kVolume);
  } else {
    pooling.exclusive = context.Attr<bool>("exclusive");
    pooling.window = ParseVolumeWindow(context, VolumeAxes::kVolume,
                                       ParseVolumeExtents(context, "ksize", VolumeAxes::kVolume),
                                       {1, 1, 1}, pooling.input.size);
    for (size_t axis = 0; axis < 3; ++axis) {
      pooling.output.size[axis] = VolumeWindowCount(
          context, pooling.window, axis, pooling.input.size[axis], context.Attr<bool>("ceil_mode"));
    }
  }
  return pooling;
}

}  // namespace skiff
