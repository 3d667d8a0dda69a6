#include "operators/nn/kernels/cuda_convolution.h"

#include <algorithm>
#include <limits>

namespace skiff {
namespace {

// Enough for several of the largest images of ResNet at once, whose products fill a device.
int64_t column_bytes = int64_t{64} << 20;

constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max();

}  // namespace

int64_t CudaColumnBytes() { return column_bytes; }
void SetCudaColumnBytes(int64_t bytes) { column_bytes = bytes; }

bool CudaCountsConvolution(const VolumeConvolution& conv) {
  const VolumeDims& in = conv.input;
  const VolumeDims& out = conv.output;
  const bool is_empty = in.count() == 0 || out.count() == 0;
  if (is_empty) return true;
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t windows =
        (out.size[axis] - 1) * conv.window.stride[axis] + conv.window.reach(axis);
    const int64_t padded = in.size[axis] + conv.window.pad_begin[axis];
    if (std::max(windows, padded) > kMaxCount) return false;
  }
  return in.channels * in.points() <= kMaxCount && out.channels * out.points() <= kMaxCount &&
         conv.filter_elements() <= kMaxCount && in.channels * conv.window.taps() <= kMaxCount;
}

}  // namespace skiff
