// CUDA kernels of pool2d, pool3d and their gradient ops. Images are volumes of depth 1.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

#include "framework/op/registry.h"
#include "operators/nn/pooling/pooling.h"

namespace skiff {

struct CudaPooling {
  int64_t batch = 0;
  int64_t channels = 0;
  bool channels_last = false;
  bool is_max = false;
  bool exclusive = true;
  std::array<AxisWindows, 3> axes;  // depth, height and width

  // The elements of an image.
  int64_t input_elements() const {
    return channels * axes[0].inputs * axes[1].inputs * axes[2].inputs;
  }
  int64_t output_elements() const {
    return channels * axes[0].outputs * axes[1].outputs * axes[2].outputs;
  }
};

// Adds kernels to `type` and <type>_grad. `parse` returns the pooling of an op or its gradient op.
void AddCudaPooling(OpRegistry& registry, std::string_view type,
                    const std::function<CudaPooling(const OpContext&)>& parse);

}  // namespace skiff
