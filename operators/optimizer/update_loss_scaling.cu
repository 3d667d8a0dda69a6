// CUDA kernels of update_loss_scaling; update_loss_scaling.cc has the formula.
//
// A run is one launch for any number of gradients. The device reads FoundInfinite, StopUpdate, the
// scale and its counters, so the CPU waits for nothing. Unless a gradient isn't finite, those in
// place aren't touched.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_chunks.cuh"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_selected_rows.h"
#include "operators/common/cuda/cuda_table.cuh"
#include "operators/common/cuda/cuda_vectors.cuh"
#include "operators/optimizer/kernels/loss_scale.h"
#include "operators/optimizer/kernels/update_arguments.h"

namespace skiff {
namespace {

// One gradient, in the table. Its elements are moved as words of their size.
struct ScaledGradient {
  friend bool operator==(const ScaledGradient&, const ScaledGradient&) = default;

  const void* x = nullptr;
  void* out = nullptr;
  int64_t count = 0;
  int32_t element_bytes = 0;
  bool is_aligned = false;  // both: see cuda_chunks.cuh
};

template <typename T>
struct LossScaleUpdate {
  const ScaledGradient* gradients;
  CudaChunks chunks;
  const bool* found_infinite;
  const bool* stop_update;  // nullptr: `stops`
  bool stops;
  LossScaleRule rule;
  const T* scale;
  const int32_t* good_steps;
  const int32_t* bad_steps;
  T* scale_out;
  int32_t* good_steps_out;
  int32_t* bad_steps_out;
};

template <typename Word>
__device__ void KeepOrClearChunk(const ScaledGradient& gradient, const CudaChunk& chunk,
                                 bool clears) {
  const Word* from = static_cast<const Word*>(gradient.x);
  Word* to = static_cast<Word*>(gradient.out);
  ForEachPack<Word>(chunk, gradient.is_aligned, [&]<bool kIsWhole>(int64_t at, int count) {
    constexpr int kSize = kPackSize<Word>;
    CudaVector<Word, kSize> words{};
    if (!clears) words = LoadVector<kSize>(from + at, count, kIsWhole);
    StoreVector(words, count, kIsWhole, to + at);
  });
}

template <typename T>
__global__ void __launch_bounds__(kCudaThreads) UpdateLossScale(LossScaleUpdate<T> update) {
  const bool found_infinite = *update.found_infinite;
  // No other thread reads what this one writes.
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    const bool stops = update.stop_update == nullptr ? update.stops : *update.stop_update;
    const LossScaleState<T> now{*update.scale, *update.good_steps, *update.bad_steps};
    const LossScaleState<T> next = stops ? now : NextLossScale(now, found_infinite, update.rule);
    *update.scale_out = next.scale;
    *update.good_steps_out = next.good_steps;
    *update.bad_steps_out = next.bad_steps;
  }
  for (int64_t i = blockIdx.x; i < update.chunks.count; i += gridDim.x) {
    const CudaChunk chunk = ChunkOf(
        update.chunks, i, [&](int64_t gradient) { return update.gradients[gradient].count; });
    const ScaledGradient gradient = update.gradients[chunk.array];
    if (!found_infinite && gradient.x == gradient.out) continue;
    if (gradient.element_bytes == sizeof(uint16_t)) {
      KeepOrClearChunk<uint16_t>(gradient, chunk, found_infinite);
    } else if (gradient.element_bytes == sizeof(uint32_t)) {
      KeepOrClearChunk<uint32_t>(gradient, chunk, found_infinite);
    } else {
      KeepOrClearChunk<uint64_t>(gradient, chunk, found_infinite);
    }
  }
}

template <typename T>
class UpdateLossScalingOnDevice final : public Kernel {
 public:
  explicit UpdateLossScalingOnDevice(const PrepareContext& context)
      : pairs_(PairsOf(context, "X", "Out")),
        found_infinite_(context, "FoundInfinite"),
        stop_update_(context, "StopUpdate"),
        scale_(context, "PrevLossScaling"),
        good_steps_(context, "InGoodSteps"),
        bad_steps_(context, "InBadSteps"),
        scale_out_(context, "LossScaling"),
        good_steps_out_(context, "OutGoodSteps"),
        bad_steps_out_(context, "OutBadSteps"),
        gradients_(pairs_.size()),
        first_chunks_(FirstChunks(ElementCounts(context, "X"))),
        gradient_table_(context.place(), gradients_.size()),
        chunk_table_(context.place(), first_chunks_.size()) {
    update_.stops = context.Attr<bool>("stop_update");
    update_.rule = LossScaleRuleOf(context);
  }

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const cudaStream_t stream = StreamOf(run);
    update_.found_infinite = found_infinite_(run);
    update_.stop_update = stop_update_(run);
    update_.scale = scale_(run);
    update_.good_steps = good_steps_(run);
    update_.bad_steps = bad_steps_(run);
    update_.scale_out = scale_out_(run);
    update_.good_steps_out = good_steps_out_(run);
    update_.bad_steps_out = bad_steps_out_(run);
    const int64_t chunks = first_chunks_.back();
    if (chunks > 0) {
      Locate(run);
      update_.gradients = gradient_table_.Store(gradients_, stream);
      update_.chunks = {.first = chunk_table_.Store(first_chunks_, stream),
                        .array_count = static_cast<int64_t>(gradients_.size()),
                        .count = chunks};
    }
    UpdateLossScale<<<std::max(1, CudaBlocks(chunks)), kCudaThreads, 0, stream>>>(update_);
    CheckLaunch("update_loss_scaling");
    for (const UpdateArguments::Pair& pair : pairs_) {
      const Tensor& x = run.input(pair.in);
      if (x.is_selected_rows()) CopyRowNumbersOnDevice(run, x, &run.output(pair.out));
    }
  }

 private:
  void Locate(const KernelContext& run) {
    for (size_t i = 0; i < gradients_.size(); ++i) {
      const Tensor& x = run.input(pairs_[i].in);
      void* const out = run.output(pairs_[i].out).raw_data();
      gradients_[i] = {.x = x.raw_data(),
                       .out = out,
                       .count = x.element_count(),
                       .element_bytes = static_cast<int32_t>(SizeOf(x.dtype())),
                       .is_aligned = IsPackAligned(x.raw_data()) && IsPackAligned(out)};
    }
  }

  std::vector<UpdateArguments::Pair> pairs_;
  In<bool> found_infinite_;
  In<bool> stop_update_;
  In<T> scale_;
  In<int32_t> good_steps_;
  In<int32_t> bad_steps_;
  Out<T> scale_out_;
  Out<int32_t> good_steps_out_;
  Out<int32_t> bad_steps_out_;
  std::vector<ScaledGradient> gradients_;
  std::vector<int64_t> first_chunks_;
  CudaTable<ScaledGradient> gradient_table_;
  CudaTable<int64_t> chunk_table_;
  LossScaleUpdate<T> update_{};
};

}  // namespace

void RegisterUpdateLossScalingCuda(OpRegistry& registry) {
  const auto prepare = [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
    return std::make_unique<UpdateLossScalingOnDevice<T>>(context);
  };
  AddCudaKernels<float, double>(registry, "update_loss_scaling", prepare);
  registry.AddSelectedRowsKernels<float, double>("update_loss_scaling", prepare, PlaceKind::kCuda);
}

}  // namespace skiff
