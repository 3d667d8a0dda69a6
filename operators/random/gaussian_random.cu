// CUDA kernels of gaussian_random; gaussian_random.cc says how words make elements.
#include <cmath>

#include "operators/random/kernels/cuda_random.cuh"

namespace skiff {
namespace {

template <typename T>
struct Gaussian {
  static constexpr int kWords = 4;
  static constexpr int kElements = 2;

  // NormalPair of framework/tensor/philox.h.
  __device__ void Set(const uint32_t* words, T* elements) const {
    const double radius = std::sqrt(-2.0 * std::log1p(-DeviceUnitDouble(words[0], words[1])));
    const double angle = 6.283185307179586 * DeviceUnitDouble(words[2], words[3]);
    elements[0] = static_cast<T>(mean + deviation * (radius * std::cos(angle)));
    elements[1] = static_cast<T>(mean + deviation * (radius * std::sin(angle)));
  }

  double mean;
  double deviation;
};

template <typename T>
std::unique_ptr<Kernel> PrepareGaussian(PrepareContext& context) {
  return MakeKernel(
      [gaussian = Gaussian<T>{context.Attr<float>("mean"), context.Attr<float>("std")},
       seed = context.IntAttr("seed"), out = Out<>(context, "Out")](const KernelContext& run) {
        DrawOnDevice<T>(run, InitializerKey(seed, run), gaussian, &out.tensor(run));
      });
}

}  // namespace

void RegisterGaussianRandomCuda(OpRegistry& registry) {
  AddCudaRandomKernel<float>(registry, "gaussian_random", PrepareGaussian<float>);
  AddCudaRandomKernel<double>(registry, "gaussian_random", PrepareGaussian<double>);
}

}  // namespace skiff
