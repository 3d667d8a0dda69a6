// The arguments and the messages of c_batch_norm_statistics, for kernels of all places.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/op/op_context.h"

namespace skiff {

// The moments of a batch, of a channel: the message of a rank.
struct BatchMoments {
  double mean;
  double variance;
};

// The inputs and outputs of a layer, as indices of KernelContext.
struct StatisticsOfLayer {
  int mean = -1;
  int variance = -1;
  int batch_mean = -1;
  int batch_variance = -1;
  int mean_out = -1;
  int variance_out = -1;
  double momentum = 0;
  int64_t first_channel = 0;  // the channels of all layers are numbered through
  int64_t channels = 0;
};

// Returns the layers. Throws Error if they have too many channels.
std::vector<StatisticsOfLayer> LayersOf(const OpContext& context);

}  // namespace skiff
