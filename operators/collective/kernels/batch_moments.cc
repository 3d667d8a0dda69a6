#include "operators/collective/kernels/batch_moments.h"

#include "framework/base/element_count.h"

namespace skiff {

std::vector<StatisticsOfLayer> LayersOf(const OpContext& context) {
  const auto& momentum = context.Attr<std::vector<float>>("momentum");
  std::vector<StatisticsOfLayer> layers;
  int64_t first = 0;
  for (size_t i = 0; i < context.InputCount("Mean"); ++i) {
    const int64_t channels = context.Input("Mean", i).shape.element_count();
    layers.push_back({.mean = context.InputIndex("Mean", i),
                      .variance = context.InputIndex("Variance", i),
                      .batch_mean = context.InputIndex("BatchMean", i),
                      .batch_variance = context.InputIndex("BatchVariance", i),
                      .mean_out = context.OutputIndex("MeanOut", i),
                      .variance_out = context.OutputIndex("VarianceOut", i),
                      .momentum = momentum[i],
                      .first_channel = first,
                      .channels = channels});
    first = AddCounts(first, channels);
  }
  return layers;
}

}  // namespace skiff
