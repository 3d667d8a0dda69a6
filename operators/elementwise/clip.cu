// CUDA kernels of clip and clip_grad; clip.cc has the formulas.
#include "operators/common/cuda_launch.h"
#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

// min and max: numbers, or tensors of one.
template <typename T>
struct Bounds {
  explicit Bounds(const CudaUnaryLaunch& launch)
      : min(launch.numbers.values[0]),
        max(launch.numbers.values[1]),
        given_min(static_cast<const T*>(launch.tensors[0])),
        given_max(static_cast<const T*>(launch.tensors[1])) {}

  __device__ T low() const { return given_min == nullptr ? static_cast<T>(min) : *given_min; }
  __device__ T high() const { return given_max == nullptr ? static_cast<T>(max) : *given_max; }

  float min;
  float max;
  const T* given_min;
  const T* given_max;
};

template <typename T>
struct Clip {
  __device__ T operator()(T x) const {
    const T low = bounds.low();
    const T high = bounds.high();
    const T above = x < low ? low : x;
    return above > high ? high : above;
  }

  Bounds<T> bounds;
};

template <typename T>
struct ClipGrad {
  __device__ T operator()(T x, T dout) const {
    return x > bounds.low() && x < bounds.high() ? dout : T{0};
  }

  Bounds<T> bounds;
};

[[noreturn]] void ThrowBadBounds(float min, float max) {
  Throw(ErrorCode::kInvalidArgument, "clip: min = ", min, " and max = ", max,
        ", expected min <= max");
}

// A fault holds the bits of both bounds as floats: min's are the position, max's the value.
template <typename T>
__global__ void CheckBounds(Bounds<T> bounds, uint64_t* fault) {
  if (bounds.low() <= bounds.high()) return;
  constexpr uint32_t kNotANumber = 0x7FC00000;
  const auto min = static_cast<float>(bounds.low());
  const auto max = static_cast<float>(bounds.high());
  NoteFault(fault, min == min ? std::bit_cast<uint32_t>(min) : kNotANumber,
            std::bit_cast<int32_t>(max));
}

void ThrowClipFault(const DataFault& fault) {
  ThrowBadBounds(std::bit_cast<float>(static_cast<uint32_t>(fault.position)),
                 std::bit_cast<float>(static_cast<int32_t>(fault.value)));
}

template <typename T>
const char* LaunchClip(const CudaUnaryLaunch& launch) {
  const Bounds<T> bounds(launch);
  if (bounds.given_min != nullptr || bounds.given_max != nullptr) {
    CheckBounds<T>
        <<<1, 1, 0, static_cast<cudaStream_t>(launch.grid.stream)>>>(bounds, launch.fault);
  } else if (!(bounds.min <= bounds.max)) {
    ThrowBadBounds(bounds.min, bounds.max);
  }
  return cuda_unary::LaunchApply<T>(launch, Clip<T>{bounds});
}

template <typename T>
const char* LaunchClipGrad(const CudaUnaryLaunch& launch) {
  return cuda_unary::LaunchApplyGradient<T>(launch, ClipGrad<T>{Bounds<T>(launch)});
}

}  // namespace

void RegisterClipCuda(OpRegistry& registry) {
  const CudaUnaryFacts facts{.type = "clip",
                             .grad_reads = "X",
                             .attributes = {"min", "max"},
                             .tensors = {"Min", "Max"},
                             .throw_fault = ThrowClipFault};
  AddCudaUnaryKernel(registry, facts, DType::kFloat32, LaunchClip<float>);
  AddCudaUnaryKernel(registry, facts, DType::kFloat64, LaunchClip<double>);
  AddCudaUnaryGradKernel(registry, facts, DType::kFloat32, LaunchClipGrad<float>);
  AddCudaUnaryGradKernel(registry, facts, DType::kFloat64, LaunchClipGrad<double>);
}

}  // namespace skiff
