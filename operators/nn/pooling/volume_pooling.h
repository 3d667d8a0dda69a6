// The geometry of a pooling of volumes.
#pragma once

#include "framework/op/op_context.h"
#include "operators/nn/kernels/volume_window.h"
#include "operators/nn/pooling/pooling.h"

namespace skiff {

struct VolumePooling {
  VolumeDims input;
  VolumeDims output;
  VolumeWindow window;  // unused if `adaptive`
  bool is_max = false;  // else the average
  bool exclusive = true;
  bool adaptive = false;
  ChannelOrder order = ChannelOrder::kFirst;
};

// Returns the pooling of pool3d or its gradient op, by slot X and the attributes. Dims of -1 stay
// unknown. Throws Error for attributes that don't fit.
VolumePooling ParseVolumePooling(const OpContext& context);

}  // namespace skiff
