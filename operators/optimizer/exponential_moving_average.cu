// CUDA kernels of exponential_moving_average; exponential_moving_average.cc has the formula.
#include "operators/optimizer/kernels/cuda_average.cuh"

namespace skiff {
namespace {

#include "operators/optimizer/kernels/exponential_moving_average_formula-inl.h"

template <typename T>
class MovingAverageRule {
 public:
  using Scalar = double;  // the decay product
  using Step = T;         // the decay
  static constexpr int kArrays = 1;
  static constexpr int kScalars = 1;

  explicit MovingAverageRule(const OpContext& context)
      : decay_(static_cast<T>(context.Attr<float>("decay"))), thres_steps_(context, "ThresSteps") {}

  void Bind(const KernelContext& run) { steps_ = thres_steps_(run); }

  __device__ T Advance(double* product) const {
    const T decay = steps_ == nullptr ? decay_ : DecayAt(decay_, *steps_);
    *product *= decay;
    return decay;
  }

  __device__ static void Accumulate(T decay, const CudaAveraged<T, Scalar>& parameter,
                                    const CudaChunk& chunk) {
    const T rest = 1 - decay;
    const T* params = parameter.param;
    const T* averages = parameter.arrays[0];
    T* averages_out = parameter.arrays_out[0];
    ForEachPack<T>(chunk, parameter.is_aligned, [&]<bool kIsWhole>(int64_t at, int count) {
      const Pack<T> param = LoadPack<kIsWhole>(params + at, count);
      Pack<T> average = LoadPack<kIsWhole>(averages + at, count);
#pragma unroll
      for (int j = 0; j < kPackSize<T>; ++j) {
        average.values[j] = std::fma(decay, average.values[j], rest * param.values[j]);
      }
      StorePack<kIsWhole>(average, count, averages_out + at);
    });
  }

 private:
  T decay_;
  In<int64_t> thres_steps_;
  const int64_t* steps_ = nullptr;  // on the device; nullptr: the decay is constant
};

}  // namespace

void RegisterExponentialMovingAverageCuda(OpRegistry& registry) {
  AddCudaAverageKernel<MovingAverageRule<float>, float>(registry, "exponential_moving_average");
  AddCudaAverageKernel<MovingAverageRule<double>, double>(registry, "exponential_moving_average");
}

}  // namespace skiff
