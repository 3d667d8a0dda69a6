// CUDA kernels of average_accumulates; average_accumulates.cc has the formula.
#include "operators/optimizer/kernels/cuda_average.cuh"

namespace skiff {
namespace {

#include "operators/optimizer/kernels/average_accumulates_formula-inl.h"

template <typename T>
class AccumulatesRule {
 public:
  using Scalar = int64_t;
  using Step = Fold;
  using Parameter = CudaAveraged<T, Scalar>;
  static constexpr int kArrays = kSums;
  static constexpr int kScalars = kCounts;

  explicit AccumulatesRule(const OpContext& context) : window_(context) {}
  void Bind(const KernelContext&) {}

  __device__ Fold Advance(Scalar* counts) const { return window_.Advance(counts); }

  __device__ static void Accumulate(Fold fold, const Parameter& parameter, const CudaChunk& chunk) {
    switch (fold) {
      case Fold::kNowhere:
        AddParam(parameter, chunk);
        KeepChunk(parameter.arrays[kSum2], chunk, parameter.arrays_out[kSum2]);
        break;
      case Fold::kToSum2:
        FoldSum1<kSum2>(parameter, chunk);
        break;
      case Fold::kToSum3:
        FoldSum1<kSum3>(parameter, chunk);
        return;
    }
    KeepChunk(parameter.arrays[kSum3], chunk, parameter.arrays_out[kSum3]);
  }

 private:
  // The pass is bound by memory: it reads param and sum_1 and writes sum_1, 12 bytes per float32.
  __device__ static void AddParam(const Parameter& parameter, const CudaChunk& chunk) {
    const T* params = parameter.param;
    const T* sums = parameter.arrays[kSum1];
    T* sums_out = parameter.arrays_out[kSum1];
    ForEachPack<T>(chunk, parameter.is_aligned, [&]<bool kIsWhole>(int64_t at, int count) {
      const Pack<T> param = LoadPack<kIsWhole>(params + at, count);
      Pack<T> sum = LoadPack<kIsWhole>(sums + at, count);
#pragma unroll
      for (int j = 0; j < kPackSize<T>; ++j) sum.values[j] += param.values[j];
      StorePack<kIsWhole>(sum, count, sums_out + at);
    });
  }

  // Sets sum kTo to sum_1 + param + sum_2, and the sums added to it to 0. All of a pack is read
  // before any of it is written, as inputs and outputs may share memory.
  template <AverageSum kTo>
  __device__ static void FoldSum1(const Parameter& parameter, const CudaChunk& chunk) {
    const T* params = parameter.param;
    const T* sums_1 = parameter.arrays[kSum1];
    const T* sums_2 = parameter.arrays[kSum2];
    T* sums_1_out = parameter.arrays_out[kSum1];
    T* sums_2_out = parameter.arrays_out[kSum2];
    T* folded = parameter.arrays_out[kTo];
    ForEachPack<T>(chunk, parameter.is_aligned, [&]<bool kIsWhole>(int64_t at, int count) {
      const Pack<T> param = LoadPack<kIsWhole>(params + at, count);
      const Pack<T> sum_2 = LoadPack<kIsWhole>(sums_2 + at, count);
      Pack<T> sum = LoadPack<kIsWhole>(sums_1 + at, count);
#pragma unroll
      for (int j = 0; j < kPackSize<T>; ++j) {
        sum.values[j] = (sum.values[j] + param.values[j]) + sum_2.values[j];
      }
      const Pack<T> zero{};
      StorePack<kIsWhole>(zero, count, sums_1_out + at);
      if constexpr (kTo == kSum3) StorePack<kIsWhole>(zero, count, sums_2_out + at);
      StorePack<kIsWhole>(sum, count, folded + at);
    });
  }

  WindowRule window_;
};

}  // namespace

void RegisterAverageAccumulatesCuda(OpRegistry& registry) {
  AddCudaAverageKernel<AccumulatesRule<float>, float>(registry, "average_accumulates");
  AddCudaAverageKernel<AccumulatesRule<double>, double>(registry, "average_accumulates");
}

}  // namespace skiff
