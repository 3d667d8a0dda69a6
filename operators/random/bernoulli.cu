// CUDA kernels of bernoulli; bernoulli.cc has the rule.
#include <bit>

#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_vector_loop.cuh"
#include "operators/random/kernels/cuda_random.cuh"

namespace skiff {
namespace {

// A fault's value has the bits of the probability as a float.
template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    DrawBernoulli(DevicePhilox philox, const T* x, T* out, int64_t count, uint64_t* fault) {
  ForEachVector<4>(count, false, [&](int64_t i, int length, bool) {
    const DevicePhilox::Block block = philox.At(static_cast<uint64_t>(i / 4));
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (j >= length) break;
      const T p = x[i + j];
      if (!(p >= T{0} && p <= T{1})) {
        NoteFault(fault, i + j, std::bit_cast<int32_t>(static_cast<float>(p)));
      }
      // In float64, where X * 2^32 is exact.
      const double bound = static_cast<double>(p) * 0x1.0p32;
      out[i + j] = static_cast<double>(block.words[j]) < bound ? T{1} : T{0};
    }
  });
}

template <typename T>
class BernoulliKernel final : public Kernel {
 public:
  explicit BernoulliKernel(const PrepareContext& context)
      : x_(context, "X"), out_(context, "Out") {}

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const int64_t count = x_.count(run);
    if (count == 0) return;
    const CudaGrid grid = GridOf(run, (count + 3) / 4);
    DrawBernoulli<T><<<grid.blocks, kCudaThreads, 0, StreamOf(run)>>>(
        DevicePhilox(run.random_key()), x_(run), out_(run), count, run.fault);
    CheckLaunch("bernoulli");
  }

  [[noreturn]] void ThrowFault(const DataFault& fault) const override {
    Throw(ErrorCode::kOutOfRange, "bernoulli: element ", fault.position, " of X is ",
          std::bit_cast<float>(static_cast<int32_t>(fault.value)),
          ", expected a probability in [0, 1]");
  }

 private:
  In<T> x_;
  Out<T> out_;
};

template <typename T>
std::unique_ptr<Kernel> PrepareBernoulli(PrepareContext& context) {
  return std::make_unique<BernoulliKernel<T>>(context);
}

}  // namespace

void RegisterBernoulliCuda(OpRegistry& registry) {
  AddCudaRandomKernel<float>(registry, "bernoulli", PrepareBernoulli<float>);
  AddCudaRandomKernel<double>(registry, "bernoulli", PrepareBernoulli<double>);
}

}  // namespace skiff
