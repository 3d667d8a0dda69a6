// CUDA kernels of c_batch_norm_statistics: one collects the moments of all layers for a message,
// one updates the statistics.
#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/op/registry.h"
#include "operators/collective/kernels/batch_moments.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_running_statistic.cuh"
#include "operators/common/cuda/cuda_table.cuh"
#include "operators/common/ranks/rank_gather.h"
#include "operators/common/running_statistic.h"

namespace skiff {
namespace {

// A layer, in the table.
template <typename T>
struct CudaLayer {
  friend bool operator==(const CudaLayer&, const CudaLayer&) = default;

  const T* mean = nullptr;
  const T* variance = nullptr;
  const double* batch_mean = nullptr;
  const double* batch_variance = nullptr;
  T* mean_out = nullptr;
  T* variance_out = nullptr;
  double momentum = 0;
  int64_t first_channel = 0;
};

template <typename T>
struct CudaLayers {
  // Returns the layer of a channel.
  __device__ const CudaLayer<T>& Of(int64_t channel) const {
    int64_t layer = 0;
    int64_t after = count;
    while (after - layer > 1) {
      const int64_t middle = (layer + after) / 2;
      (layers[middle].first_channel <= channel ? layer : after) = middle;
    }
    return layers[layer];
  }

  const CudaLayer<T>* layers;
  int64_t count;
};

template <typename T>
struct CollectMoments {
  __device__ void operator()(int64_t channel) const {
    const CudaLayer<T>& layer = layers.Of(channel);
    const int64_t at = channel - layer.first_channel;
    moments[channel] = {layer.batch_mean[at], layer.batch_variance[at]};
  }

  CudaLayers<T> layers;
  BatchMoments* moments;
};

template <typename T>
struct UpdateStatistics {
  __device__ void operator()(int64_t i) const {
    const CudaLayer<T>& layer = layers.Of(part.begin + i);
    const int64_t at = part.begin + i - layer.first_channel;
    T mean = layer.mean[at];
    T variance = layer.variance[at];
    for (int32_t rank = 0; rank < part.ranks; ++rank) {
      const BatchMoments moments = part.Of(rank, i);
      if (moments.variance == kNoBatchVariance) continue;
      mean = UpdatedOnDevice(layer.momentum, mean, moments.mean);
      variance = UpdatedOnDevice(layer.momentum, variance, moments.variance);
    }
    layer.mean_out[at] = mean;
    layer.variance_out[at] = variance;
  }

  CudaLayers<T> layers;
  GatheredItems<BatchMoments> part;
};

template <typename T>
class CudaBatchNormStatistics final : public Kernel {
 public:
  explicit CudaBatchNormStatistics(PrepareContext& context)
      : arguments_(LayersOf(context)),
        channels_(arguments_.back().first_channel + arguments_.back().channels),
        gather_(context, channels_),
        layers_(arguments_.size()),
        table_(context.place(), layers_.size()) {}

  void Bind(const KernelContext& run) override {
    for (size_t i = 0; i < layers_.size(); ++i) {
      const StatisticsOfLayer& from = arguments_[i];
      layers_[i] = {.mean = run.input(from.mean).template data<T>(),
                    .variance = run.input(from.variance).template data<T>(),
                    .batch_mean = run.input(from.batch_mean).template data<double>(),
                    .batch_variance = run.input(from.batch_variance).template data<double>(),
                    .mean_out = run.output(from.mean_out).template data<T>(),
                    .variance_out = run.output(from.variance_out).template data<T>(),
                    .momentum = from.momentum,
                    .first_channel = from.first_channel};
    }
  }

  void Run(const KernelContext& run) override {
    constexpr const char* kWhat = "c_batch_norm_statistics";
    const CudaLayers<T> layers{table_.Store(layers_, StreamOf(run)),
                               static_cast<int64_t>(layers_.size())};
    ForEachOnDevice(run, kWhat, channels_, CollectMoments<T>{layers, gather_.Own(run)});
    gather_.Run(run, [&](const GatheredItems<BatchMoments>& part) {
      ForEachOnDevice(run, kWhat, part.count, UpdateStatistics<T>{layers, part});
    });
  }

 private:
  std::vector<StatisticsOfLayer> arguments_;
  int64_t channels_;
  RankGather<BatchMoments> gather_;
  std::vector<CudaLayer<T>> layers_;
  CudaTable<CudaLayer<T>> table_;
};

}  // namespace

void RegisterCBatchNormStatisticsCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(
      registry, "c_batch_norm_statistics",
      [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<CudaBatchNormStatistics<T>>(context);
      });
}

}  // namespace skiff
