// The slots, the shape rule and the messages of c_batch_norm_statistics, for kernels of all places.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/op/kernel.h"
#include "operators/collective/kernels/collective_definition.h"
#include "operators/collective/kernels/messages.h"
#include "operators/collective/kernels/scratch.h"

namespace skiff {

// The moments of a batch, of a channel.
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

// Channels [begin, begin + count) of all layers, with the moments of all ranks.
struct GatheredMoments {
  int64_t begin = 0;
  int64_t count = 0;
  int32_t rank = 0;
  int32_t ranks = 1;
  const BatchMoments* own = nullptr;       // of the channels
  const BatchMoments* received = nullptr;  // of the other ranks, one after the other, in order

  // Returns the moments of channel begin + i on a rank.
  constexpr const BatchMoments& Of(int32_t of_rank, int64_t i) const {
    if (of_rank == rank) return own[i];
    return received[(of_rank < rank ? of_rank : of_rank - 1) * count + i];
  }
};

class MomentsExchange {
 public:
  MomentsExchange(PrepareContext& context, int64_t channels)
      : channels_(channels),
        own_(context.RequestWorkspace(channels * static_cast<int64_t>(sizeof(BatchMoments)))),
        scratch_(context, kMaxElementCount, sizeof(BatchMoments), 1) {}

  // Returns where the kernel collects the moments of this rank, a BatchMoments for each channel.
  BatchMoments* Own(const KernelContext& run) const {
    return static_cast<BatchMoments*>(run.workspace(own_));
  }

  // Gathers the moments of all ranks, and calls visit(gathered) for parts of all channels.
  template <typename Visit>
  void Run(const KernelContext& run, const Visit& visit) {
    const World& world = WorldOf(run);
    const int64_t piece = scratch_.ElementsOfRank(world.size);
    for (int64_t begin = 0; begin < channels_; begin += piece) {
      const GatheredMoments part{
          .begin = begin,
          .count = std::min(piece, channels_ - begin),
          .rank = world.rank,
          .ranks = world.size,
          .own = Own(run) + begin,
          .received = static_cast<const BatchMoments*>(scratch_.Region(run, 0))};
      if (world.size > 1) Exchange(run, part);
      visit(part);
    }
  }

 private:
  void Exchange(const KernelContext& run, const GatheredMoments& part);

  int64_t channels_;
  int own_;
  Scratch scratch_;
  Messages messages_;
};

}  // namespace skiff
