// Group normalization, and instance normalization, where each channel is a group.
#pragma once

#include <cstdint>
#include <memory>

#include "framework/op/kernel.h"
#include "operators/common/half.h"
#include "operators/nn/kernels/image_window.h"

namespace skiff {

// The dims of an input [N, C, …] or [N, …, C], seen as [batch, channels, pixels], with the channels
// in groups.
struct GroupGeometry {
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t pixels = 1;
  int64_t groups = 1;
  ChannelOrder order = ChannelOrder::kFirst;

  int64_t group_channels() const { return groups == 0 ? 0 : channels / groups; }
  // The first channel of a group of an image: items are the groups of the first image, then of the
  // second, …
  int64_t first_channel(int64_t item) const { return item % groups * group_channels(); }
  // The number of elements that a group's statistics summarize.
  int64_t count() const { return group_channels() * pixels; }
};

// The second statistic of a group. The first statistic is the mean.
enum class GroupStatistic { kVariance, kInverseDeviation };

// The slots, and the meaning of the statistics.
struct GroupNormArguments {
  GroupGeometry geometry;
  GroupStatistic statistic = GroupStatistic::kVariance;
  const char* mean_slot = "";
  const char* statistic_slot = "";
};

// Returns the kernel of Y = (X - mean) / sqrt(variance + epsilon) · Scale + Bias, with the
// statistics of each group of each image. Scale, Bias and the slots of the statistics may be
// absent. T is float, double or half; Scale, Bias and statistics are float32 where T is half.
template <typename T>
std::unique_ptr<Kernel> PrepareGroupNorm(PrepareContext& context,
                                         const GroupNormArguments& arguments);
// Returns the kernel of the gradients. With h = 1 / sqrt(variance + epsilon), z = (X - mean) · h
// and g = Y@GRAD · Scale over groups of m elements:
//   X@GRAD = h · (g - sum g / m - z · sum (g · z) / m)
//   Scale@GRAD = sum Y@GRAD · z, Bias@GRAD = sum Y@GRAD over images and pixels
// Each of the three may be absent.
template <typename T>
std::unique_ptr<Kernel> PrepareGroupNormGrad(PrepareContext& context,
                                             const GroupNormArguments& arguments);

extern template std::unique_ptr<Kernel> PrepareGroupNorm<float>(PrepareContext&,
                                                                const GroupNormArguments&);
extern template std::unique_ptr<Kernel> PrepareGroupNorm<double>(PrepareContext&,
                                                                 const GroupNormArguments&);
extern template std::unique_ptr<Kernel> PrepareGroupNorm<Float16>(PrepareContext&,
                                                                  const GroupNormArguments&);
extern template std::unique_ptr<Kernel> PrepareGroupNorm<BFloat16>(PrepareContext&,
                                                                   const GroupNormArguments&);
extern template std::unique_ptr<Kernel> PrepareGroupNormGrad<float>(PrepareContext&,
                                                                    const GroupNormArguments&);
extern template std::unique_ptr<Kernel> PrepareGroupNormGrad<double>(PrepareContext&,
                                                                     const GroupNormArguments&);
extern template std::unique_ptr<Kernel> PrepareGroupNormGrad<Float16>(PrepareContext&,
                                                                      const GroupNormArguments&);
extern template std::unique_ptr<Kernel> PrepareGroupNormGrad<BFloat16>(PrepareContext&,
                                                                       const GroupNormArguments&);

}  // namespace skiff
