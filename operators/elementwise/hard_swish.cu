// CUDA kernels of hard_swish and hard_swish_grad; hard_swish.cc has the formulas.
#include "operators/common/finite.h"
#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

struct HardSwish {
  explicit HardSwish(const UnaryNumbers& numbers)
      : threshold(numbers.values[0]), scale(numbers.values[1]), offset(numbers.values[2]) {}

  template <typename T>
  __device__ T operator()(T x) const {
    const T shifted = x + static_cast<T>(offset);
    const T above = shifted < T{0} ? T{0} : shifted;
    const T top = static_cast<T>(threshold);
    // In this order: X * threshold might overflow.
    return AboveMinusInfinity(x) * ((above > top ? top : above) / static_cast<T>(scale));
  }

  float threshold;
  float scale;
  float offset;
};

struct HardSwishGrad {
  explicit HardSwishGrad(const UnaryNumbers& numbers)
      : threshold(numbers.values[0]), scale(numbers.values[1]), offset(numbers.values[2]) {}

  template <typename T>
  __device__ T operator()(T x, T dout) const {
    const T shifted = x + static_cast<T>(offset);
    const T top = static_cast<T>(threshold);
    if (shifted <= T{0}) return T{0};
    return dout * (shifted >= top ? top : x + shifted) / static_cast<T>(scale);
  }

  float threshold;
  float scale;
  float offset;
};

}  // namespace

void RegisterHardSwishCuda(OpRegistry& registry) {
  AddCudaUnary<HardSwish, HardSwishGrad>(
      registry,
      {.type = "hard_swish", .grad_reads = "X", .attributes = {"threshold", "scale", "offset"}});
}

}  // namespace skiff
