// CUDA kernels of pool3d: see pool2d.cu.
#include "operators/nn/pooling/cuda_pooling.h"
#include "operators/nn/pooling/volume_pooling.h"

namespace skiff {
namespace {

CudaPooling ParsePool3d(const OpContext& context) {
  const VolumePooling pooling = ParseVolumePooling(context);
  CudaPooling parsed{.batch = pooling.input.batch,
                     .channels = pooling.input.channels,
                     .channels_last = pooling.order == ChannelOrder::kLast,
                     .is_max = pooling.is_max,
                     .exclusive = pooling.exclusive};
  for (size_t axis = 0; axis < 3; ++axis) parsed.axes[axis] = WindowsAlong(pooling, axis);
  return parsed;
}

}  // namespace

void RegisterPool3dCuda(OpRegistry& registry) { AddCudaPooling(registry, "pool3d", ParsePool3d); }

}  // namespace skiff
