// CUDA kernels of gradient_merge; gradient_merge.cc has the formula.
//
// A run is one launch for any number of sums. The device reads Count, so the CPU waits for nothing.
// An element is rounded as on the CPU.
#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_chunks.cuh"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_table.cuh"
#include "operators/optimizer/kernels/update_arguments.h"

namespace skiff {
namespace {

// One sum, in the table.
template <typename T>
struct Merged {
  friend bool operator==(const Merged&, const Merged&) = default;

  const T* sum = nullptr;
  T* sum_out = nullptr;
  const void* grad = nullptr;  // of T, or of two bytes
  bool is_aligned = false;     // all of them: see cuda_chunks.cuh
  int64_t count = 0;
};

template <typename T>
struct Merge {
  const Merged<T>* sums;
  CudaChunks chunks;
  const int64_t* run_of_round;
  int64_t steps;
  bool mean;
  bool has_halves;
  bool is_float16;  // the two-byte dtype; else bfloat16
};

template <bool kIsWhole, typename T>
__device__ Pack<T> LoadGradient(const Merge<T>& merge, const Merged<T>& merged, int64_t at,
                                int count) {
  if constexpr (std::is_same_v<T, float>) {
    if (merge.has_halves) {
      const auto* halves = static_cast<const uint16_t*>(merged.grad);
      return LoadHalves<kIsWhole>(halves + at, merge.is_float16, count);
    }
  }
  return LoadPack<kIsWhole>(static_cast<const T*>(merged.grad) + at, count);
}

template <typename T>
__global__ void __launch_bounds__(kCudaThreads) MergeGradients(Merge<T> merge) {
  const int64_t run = *merge.run_of_round;
  const bool is_first = run <= 1;
  // By Count, not by `steps`, as on the CPU.
  const bool divides = merge.mean && run >= merge.steps;
  const T factor = divides ? static_cast<T>(1.0 / static_cast<double>(run)) : T{1};
  for (int64_t i = blockIdx.x; i < merge.chunks.count; i += gridDim.x) {
    const CudaChunk chunk =
        ChunkOf(merge.chunks, i, [&](int64_t array) { return merge.sums[array].count; });
    const Merged<T> merged = merge.sums[chunk.array];
    ForEachPack<T>(chunk, merged.is_aligned, [&]<bool kIsWhole>(int64_t at, int count) {
      Pack<T> sum = LoadGradient<kIsWhole>(merge, merged, at, count);
      if (!is_first) {
        const Pack<T> before = LoadPack<kIsWhole>(merged.sum + at, count);
#pragma unroll
        for (int j = 0; j < kPackSize<T>; ++j) sum.values[j] += before.values[j];
      }
#pragma unroll
      for (int j = 0; j < kPackSize<T>; ++j) sum.values[j] *= factor;
      StorePack<kIsWhole>(sum, count, merged.sum_out + at);
    });
  }
}

template <typename T>
class GradientMerge final : public Kernel {
 public:
  explicit GradientMerge(const PrepareContext& context)
      : pairs_(PairsOf(context, "Accumulated", "AccumulatedOut")),
        grads_(InputIndices(context, "Grad")),
        count_(context, "Count"),
        sums_(pairs_.size()),
        first_chunks_(FirstChunks(ElementCounts(context, "Accumulated"))),
        sum_table_(context.place(), sums_.size()),
        chunk_table_(context.place(), first_chunks_.size()) {
    merge_.steps = context.IntAttr("steps");
    merge_.mean = context.Attr<bool>("mean");
    const DType grad = context.Input("Grad").dtype;
    merge_.has_halves = IsHalf(grad);
    merge_.is_float16 = grad == DType::kFloat16;
  }

  void Bind(const KernelContext& run) override {
    for (size_t i = 0; i < sums_.size(); ++i) {
      const Tensor& grad = run.input(grads_[i]);
      Merged<T>& merged = sums_[i];
      merged.sum = run.input(pairs_[i].in).template data<T>();
      merged.sum_out = run.output(pairs_[i].out).template data<T>();
      merged.grad = grad.raw_data();
      merged.count = grad.element_count();
      merged.is_aligned =
          ArePacksAligned(merged.sum, merged.sum_out) &&
          (merge_.has_halves ? IsHalfPackAligned(merged.grad) : IsPackAligned(merged.grad));
    }
    merge_.run_of_round = count_(run);
  }

  void Run(const KernelContext& run) override {
    if (first_chunks_.back() == 0) return;
    const cudaStream_t stream = StreamOf(run);
    merge_.sums = sum_table_.Store(sums_, stream);
    merge_.chunks = {.first = chunk_table_.Store(first_chunks_, stream),
                     .array_count = static_cast<int64_t>(sums_.size()),
                     .count = first_chunks_.back()};
    MergeGradients<<<CudaBlocks(merge_.chunks.count), kCudaThreads, 0, stream>>>(merge_);
    CheckLaunch("gradient_merge");
  }

 private:
  std::vector<UpdateArguments::Pair> pairs_;
  std::vector<int> grads_;
  In<int64_t> count_;
  std::vector<Merged<T>> sums_;
  std::vector<int64_t> first_chunks_;
  CudaTable<Merged<T>> sum_table_;
  CudaTable<int64_t> chunk_table_;
  Merge<T> merge_{};
};

}  // namespace

void RegisterGradientMergeCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(
      registry, "gradient_merge",
      [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<GradientMerge<T>>(context);
      });
}

}  // namespace skiff
