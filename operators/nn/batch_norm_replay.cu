// CUDA kernel of batch_norm_replay; batch_norm_replay.cc has the formula.
#include "operators/nn/normalization/cuda_batch_norm.cuh"

namespace skiff {
namespace {

// Makes the lines that the forward op had.
template <typename T>
struct SavedStatistics {
  __device__ void operator()(int64_t c) const {
    lines.mean[c] = is_unchanged ? T{0} : mean[c];
    T slope = is_unchanged ? T{1} : inverse[c];
    if (scale != nullptr && !is_unchanged) slope *= scale[c];
    lines.slope[c] = slope;
    lines.shift[c] = bias == nullptr || is_unchanged ? T{0} : bias[c];
  }

  ChannelLines<T> lines;
  const T* scale;
  const T* bias;
  const T* mean;
  const T* inverse;
  bool is_unchanged;
};

template <typename T>
std::unique_ptr<Kernel> PrepareBatchNormReplay(PrepareContext& context) {
  using Wide = WideType<T>;
  const CudaChannels channels(context, context.Input("X").shape);
  return MakeKernel([type = context.op().type, channels,
                     unchanged = !UsesGlobalStatistics(context) && channels.count() <= 1,
                     rectifies = context.Attr<std::string>("act_type") == "relu",
                     x = In<T>(context, "X"), z = In<T>(context, "Z"),
                     scale = In<Wide>(context, "Scale"), bias = In<Wide>(context, "Bias"),
                     mean = In<Wide>(context, "SavedMean"),
                     inverse = In<Wide>(context, "SavedVariance"), y = Out<T>(context, "Y"),
                     memory = RequestChannelWorkspace<T>(
                         context, channels, ChannelLines<Wide>::kCount)](const KernelContext& run) {
    const ChannelLines<Wide> lines(run.workspace(memory), channels.channels);
    ForEachOnDevice(
        run, type.c_str(), channels.channels,
        SavedStatistics<Wide>{lines, scale(run), bias(run), mean(run), inverse(run), unchanged});
    Normalize(run, type, channels, lines, x(run), z(run), rectifies, y(run));
  });
}

}  // namespace

void RegisterBatchNormReplayCuda(OpRegistry& registry) {
  AddCudaFloatKernels(registry, "batch_norm_replay", [=]<typename T>(PrepareContext& context) {
    return PrepareBatchNormReplay<T>(context);
  });
}

}  // namespace skiff
