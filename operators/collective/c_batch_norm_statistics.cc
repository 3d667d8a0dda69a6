// c_batch_norm_statistics: updates the running statistics of batch norms by the batches of all
// ranks, in the order of ranks, as one rank would that had all batches, one after the other.
//
//   MeanOut = momentum · m + (1 - momentum) · BatchMean, for m = Mean and the BatchMean of rank 0,
//   then for the result and the BatchMean of rank 1, and so on; VarianceOut likewise.
//
// It takes all layers at once, so that their moments go out in one message. BatchMean and
// BatchVariance are those of batch_norm, in float64: the bits are those of batch_norm's own
// updates. A batch with a BatchVariance of -1 updates nothing.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "framework/tensor/dims_agree.h"
#include "operators/collective/kernels/batch_moments.h"
#include "operators/collective/kernels/collective_definition.h"
#include "operators/common/ranks/rank_gather.h"
#include "operators/common/running_statistic.h"

namespace skiff {
namespace {

void CheckVector(const OpContext& context, const char* slot, size_t i, DType dtype) {
  const TensorMeta& mean = context.Input("Mean", i);
  const TensorMeta& found = context.Input(slot, i);
  SKIFF_ENFORCE(found.shape.rank() == 1 && DimsAgree(found.shape.dims(), mean.shape.dims()) &&
                    found.dtype == dtype,
                kInvalidArgument, "c_batch_norm_statistics: ", slot, "[", i, "] is ", found.dtype,
                " ", found.shape, ", expected ", dtype, " ", mean.shape, " of rank 1, as Mean[", i,
                "]");
}

void Infer(OpContext& context) {
  const size_t layers = context.InputCount("Mean");
  const DType dtype = context.Input("Mean").dtype;
  for (const char* slot : {"Variance", "BatchMean", "BatchVariance"}) {
    SKIFF_ENFORCE(context.InputCount(slot) == layers, kInvalidArgument,
                  "c_batch_norm_statistics: ", context.InputCount(slot), " ", slot, ", expected ",
                  layers, ", as Mean");
  }
  const size_t factors = context.Attr<std::vector<float>>("momentum").size();
  SKIFF_ENFORCE(factors == layers, kInvalidArgument, "c_batch_norm_statistics: momentum has ",
                factors, " entries, expected ", layers, ", as Mean");
  for (size_t i = 0; i < layers; ++i) {
    CheckVector(context, "Mean", i, dtype);
    CheckVector(context, "Variance", i, dtype);
    CheckVector(context, "BatchMean", i, DType::kFloat64);
    CheckVector(context, "BatchVariance", i, DType::kFloat64);
  }
  SetOutputsLike(context, "MeanOut", "Mean");
  SetOutputsLike(context, "VarianceOut", "Variance");
}

template <typename T>
class BatchNormStatistics final : public Kernel {
 public:
  explicit BatchNormStatistics(PrepareContext& context)
      : layers_(LayersOf(context)),
        gather_(context, layers_.back().first_channel + layers_.back().channels) {}

  void Run(const KernelContext& run) override {
    BatchMoments* own = gather_.Own(run);
    for (const StatisticsOfLayer& layer : layers_) {
      const auto* means = run.input(layer.batch_mean).template data<double>();
      const auto* variances = run.input(layer.batch_variance).template data<double>();
      for (int64_t c = 0; c < layer.channels; ++c) {
        own[layer.first_channel + c] = {means[c], variances[c]};
      }
    }
    gather_.Run(run, [&](const GatheredItems<BatchMoments>& part) { Update(run, part); });
  }

 private:
  // Updates the channels of the part, layer by layer.
  void Update(const KernelContext& run, const GatheredItems<BatchMoments>& part) const {
    for (const StatisticsOfLayer& layer : layers_) {
      const int64_t begin = std::max(part.begin, layer.first_channel);
      const int64_t end = std::min(part.begin + part.count, layer.first_channel + layer.channels);
      for (int64_t c = begin; c < end; ++c) UpdateChannel(run, part, layer, c);
    }
  }

  static void UpdateChannel(const KernelContext& run, const GatheredItems<BatchMoments>& part,
                            const StatisticsOfLayer& layer, int64_t c) {
    const int64_t at = c - layer.first_channel;
    T mean = run.input(layer.mean).template data<T>()[at];
    T variance = run.input(layer.variance).template data<T>()[at];
    for (int32_t rank = 0; rank < part.ranks; ++rank) {
      const BatchMoments& moments = part.Of(rank, c - part.begin);
      if (moments.variance == kNoBatchVariance) continue;
      mean = UpdatedStatistic(layer.momentum, mean, moments.mean);
      variance = UpdatedStatistic(layer.momentum, variance, moments.variance);
    }
    run.output(layer.mean_out).template data<T>()[at] = mean;
    run.output(layer.variance_out).template data<T>()[at] = variance;
  }

  std::vector<StatisticsOfLayer> layers_;
  RankGather<BatchMoments> gather_;
};

SlotDef LayerSlot(StaticText name, StaticText doc) {
  return {.name = name, .doc = doc, .duplicable = true};
}

}  // namespace

void RegisterCBatchNormStatistics(OpRegistry& registry) {
  OpDef def;
  def.type = "c_batch_norm_statistics";
  def.doc =
      "MeanOut and VarianceOut = Mean and Variance, updated by the BatchMean and BatchVariance of "
      "each rank, in the order of ranks, as by batch_norm; for a list of layers.";
  def.inputs = {LayerSlot("Mean", "[C], the running means, float32 or float64."),
                LayerSlot("Variance", "[C], the running variances."),
                LayerSlot("BatchMean", "float64 [C], of batch_norm."),
                LayerSlot("BatchVariance",
                          "float64 [C], of batch_norm; -1 where the batch updates nothing.")};
  def.outputs = {LayerSlot("MeanOut", "[C], the new running means; usually Mean itself."),
                 LayerSlot("VarianceOut", "[C], the new running variances.")};
  def.attrs = RingAttrs();
  def.attrs.push_back({.name = "momentum",
                       .type = AttrType::kFloats,
                       .doc = "How much of the running statistics a batch keeps, for each layer."});
  def.infer = Infer;
  // Neither statistics nor moments are ever half.
  def.precision = Precision::kNone;
  def.no_gradient_reason = "no gradient flows into running statistics";
  def.kernel_dtype_slot = "Mean";
  def.running_state = {{"Mean", "MeanOut"}, {"Variance", "VarianceOut"}};
  def.in_place = {{"Mean", "MeanOut"}, {"Variance", "VarianceOut"}};
  def.collective = true;
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>(
      "c_batch_norm_statistics",
      []<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<BatchNormStatistics<T>>(context);
      });
}

}  // namespace skiff
