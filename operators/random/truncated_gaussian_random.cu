// CUDA kernels of truncated_gaussian_random; truncated_gaussian_random.cc has the method.
#include <cmath>

#include "operators/random/kernels/cuda_random.cuh"

namespace skiff {
namespace {

constexpr double kCut = 2.0;  // standard deviations
constexpr double kSqrt2 = 1.4142135623730951;

// The inverse of erf, as on the CPU.
__device__ double InverseErf(double y) {
  constexpr double kPi = 3.141592653589793;
  constexpr double kTwoOverSqrtPi = 1.1283791670955126;
  constexpr double kA = 0.147;
  const double log_term = std::log1p(-y * y);
  const double half = 2.0 / (kPi * kA) + log_term / 2.0;
  double x = std::copysign(std::sqrt(std::sqrt(half * half - log_term / kA) - half), y);
  for (int step = 0; step < 2; ++step) {
    const double newton = (std::erf(x) - y) / (kTwoOverSqrtPi * std::exp(-x * x));
    x -= newton / (1.0 + x * newton);
  }
  return x;
}

template <typename T>
struct TruncatedGaussian {
  static constexpr int kWords = 2;
  static constexpr int kElements = 1;

  __device__ void Set(const uint32_t* words, T* element) const {
    const double y = (2.0 * DeviceUnitDouble(words[0], words[1]) - 1.0) * mass;
    const double z = std::fmin(std::fmax(kSqrt2 * InverseErf(y), -kCut), kCut);
    *element = static_cast<T>(mean + deviation * z);
  }

  double mean;
  double deviation;
  double mass;  // of the distribution within the cut
};

template <typename T>
std::unique_ptr<Kernel> PrepareTruncated(PrepareContext& context) {
  const TruncatedGaussian<T> gaussian{context.Attr<float>("mean"), context.Attr<float>("std"),
                                      std::erf(kCut / kSqrt2)};
  return MakeKernel([gaussian, seed = context.IntAttr("seed"),
                     out = Out<>(context, "Out")](const KernelContext& run) {
    DrawOnDevice<T>(run, InitializerKey(seed, run), gaussian, &out.tensor(run));
  });
}

}  // namespace

void RegisterTruncatedGaussianRandomCuda(OpRegistry& registry) {
  AddCudaRandomKernel<float>(registry, "truncated_gaussian_random", PrepareTruncated<float>);
  AddCudaRandomKernel<double>(registry, "truncated_gaussian_random", PrepareTruncated<double>);
}

}  // namespace skiff
