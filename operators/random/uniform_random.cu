// CUDA kernels of uniform_random; uniform_random.cc says how words make elements.
#include <cmath>
#include <type_traits>

#include "operators/random/kernels/cuda_random.cuh"

namespace skiff {
namespace {

template <typename T>
struct Uniform {
  static constexpr int kWords = std::is_same_v<T, float> ? 1 : 2;
  static constexpr int kElements = 1;

  __device__ void Set(const uint32_t* words, T* element) const {
    double unit;
    if constexpr (kWords == 1) {
      unit = DeviceUnitFloat(words[0]);
    } else {
      unit = DeviceUnitDouble(words[0], words[1]);
    }
    const T value = static_cast<T>(min + (max - min) * unit);
    *element = below_max < value ? below_max : value;
  }

  double min;
  double max;
  T below_max;  // the largest number below max
};

template <typename T>
__global__ void SetDiagonal(T value, int64_t step, int64_t count, T* out) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t k = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; k < count; k += stride) {
    out[k * step + k] = value;
  }
}

template <typename T>
std::unique_ptr<Kernel> PrepareUniform(PrepareContext& context) {
  const double min = context.Attr<float>("min");
  const double max = context.Attr<float>("max");
  const T below_max =
      min < max ? std::nextafter(static_cast<T>(max), static_cast<T>(min)) : static_cast<T>(max);
  return MakeKernel([uniform = Uniform<T>{min, max, below_max}, seed = context.IntAttr("seed"),
                     count = context.IntAttr("diag_num"), step = context.IntAttr("diag_step"),
                     value = static_cast<T>(context.Attr<float>("diag_val")),
                     out = Out<>(context, "Out")](const KernelContext& run) {
    Tensor& tensor = out.tensor(run);
    DrawOnDevice<T>(run, InitializerKey(seed, run), uniform, &tensor);
    if (count <= 0) return;
    const CudaGrid grid = GridOf(run, count);
    SetDiagonal<T><<<grid.blocks, kCudaThreads, 0, static_cast<cudaStream_t>(grid.stream)>>>(
        value, step, count, tensor.data<T>());
    const char* failure = LaunchFailure();
    SKIFF_ENFORCE(failure == nullptr, kIo, "uniform_random: launch failed: ", failure);
  });
}

}  // namespace

void RegisterUniformRandomCuda(OpRegistry& registry) {
  AddCudaRandomKernel<float>(registry, "uniform_random", PrepareUniform<float>);
  AddCudaRandomKernel<double>(registry, "uniform_random", PrepareUniform<double>);
}

}  // namespace skiff
