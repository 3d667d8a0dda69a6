// CUDA kernels of hard_sigmoid and hard_sigmoid_grad; hard_sigmoid.cc has the formulas.
#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

struct HardSigmoid {
  explicit HardSigmoid(const UnaryNumbers& numbers)
      : slope(numbers.values[0]), offset(numbers.values[1]) {}

  template <typename T>
  __device__ T operator()(T x) const {
    const T line = x * static_cast<T>(slope) + static_cast<T>(offset);
    const T above = line < T{0} ? T{0} : line;
    return above > T{1} ? T{1} : above;
  }

  float slope;
  float offset;
};

struct HardSigmoidGrad {
  explicit HardSigmoidGrad(const UnaryNumbers& numbers) : slope(numbers.values[0]) {}

  template <typename T>
  __device__ T operator()(T out, T dout) const {
    return out > T{0} && out < T{1} ? dout * static_cast<T>(slope) : T{0};
  }

  float slope;
};

}  // namespace

void RegisterHardSigmoidCuda(OpRegistry& registry) {
  AddCudaUnary<HardSigmoid, HardSigmoidGrad>(
      registry, {.type = "hard_sigmoid", .grad_reads = "Out", .attributes = {"slope", "offset"}});
}

}  // namespace skiff
