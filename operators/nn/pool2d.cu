// CUDA kernels of pool2d, pool3d and their gradient ops; pool2d.cc has the formulas.
//
// A thread computes one element, also of the gradient, for which it looks for the windows that the
// element is in. So no two threads add to the same one, and sums have the order of the CPU. In
// images with channels first, whose windows lie far apart, a warp shares the elements of a large
// window.
#include <cuda_runtime.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "framework/base/str_cat.h"
#include "framework/op/arguments.h"
#include "operators/common/cuda/cuda_combine.cuh"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_vectors.cuh"
#include "operators/nn/pooling/cuda_pooling_launch.cuh"

namespace skiff {
namespace {

// The result of a window, from the elements that it has taken. Those of half are floats.
template <typename T, bool kIsMax>
struct Pooled;

template <typename T>
struct Pooled<T, true> {
  T best = -std::numeric_limits<T>::infinity();

  __device__ void Take(T value) { best = MaxOrNan(best, value); }
  __device__ void JoinWarp() {
    best = CombineWarp(best, [](T a, T b) { return MaxOrNan(a, b); });
  }
  __device__ T Result(int64_t elements, int64_t) const {
    return elements == 0 ? std::numeric_limits<T>::lowest() : best;
  }
};

template <typename T>
struct Pooled<T, false> {
  double sum = 0;

  __device__ void Take(T value) { sum += value; }
  __device__ void JoinWarp() { sum = CombineWarp(sum, JoinBySum{}); }
  __device__ T Result(int64_t, int64_t divisor) const {
    return divisor == 0 ? T(0) : static_cast<T>(sum / static_cast<double>(divisor));
  }
};

template <typename T, bool kIsMax>
__global__ void PoolWindows(CudaPoolingWindows windows, CudaVolume in, CudaVolume out,
                            const T* input, T* output, uint32_t count) {
  const uint32_t stride = gridDim.x * blockDim.x;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    const CudaElement at = out.At(i);
    const CudaSpan spans[3] = {windows.At(0, at.place[0]), windows.At(1, at.place[1]),
                               windows.At(2, at.place[2])};
    const T* channel = input + in.Channel(at.n, at.c);
    Pooled<WideType<T>, kIsMax> pooled;
    bool is_empty = true;
    for (int z = spans[0].begin; z < spans[0].end; ++z) {
      for (int y = spans[1].begin; y < spans[1].end; ++y) {
        const T* row = channel + z * in.step(0) + y * in.step(1);
        for (int x = spans[2].begin; x < spans[2].end; ++x) {
          pooled.Take(Widened(row[x * in.step(2)]));
          is_empty = false;
        }
      }
    }
    output[i] = Rounded<T>(pooled.Result(is_empty ? 0 : 1, windows.Divisor(spans)));
  }
}

// The same with a warp for each window.
template <typename T, bool kIsMax>
__global__ void PoolLargeWindows(CudaPoolingWindows windows, CudaVolume in, CudaVolume out,
                                 const T* input, T* output, uint32_t count) {
  const uint32_t lane = threadIdx.x % kCudaWarp;
  const uint32_t stride = gridDim.x * blockDim.x / kCudaWarp;
  for (uint32_t i = (blockIdx.x * blockDim.x + threadIdx.x) / kCudaWarp; i < count; i += stride) {
    const CudaElement at = out.At(i);
    const CudaSpan spans[3] = {windows.At(0, at.place[0]), windows.At(1, at.place[1]),
                               windows.At(2, at.place[2])};
    const T* channel = input + in.Channel(at.n, at.c) + spans[0].begin * in.step(0) +
                       spans[1].begin * in.step(1) + spans[2].begin * in.step(2);
    const auto depth = static_cast<uint32_t>(spans[0].end - spans[0].begin);
    const auto height = static_cast<uint32_t>(spans[1].end - spans[1].begin);
    const auto width = static_cast<uint32_t>(spans[2].end - spans[2].begin);
    const uint32_t elements = depth * height * width;
    Pooled<WideType<T>, kIsMax> pooled;
    for (uint32_t j = lane; j < elements; j += kCudaWarp) {
      const uint32_t row = j / width;
      pooled.Take(Widened(channel[row / height * in.step(0) + row % height * in.step(1) +
                                  (j - row * width) * in.step(2)]));
    }
    pooled.JoinWarp();
    if (lane == 0) output[i] = Rounded<T>(pooled.Result(elements, windows.Divisor(spans)));
  }
}

// Returns whether no element of the window before (z, y, x), in row-major order, is a maximum.
template <typename T>
__device__ bool IsFirstMaximum(const CudaVolume& in, const T* channel, WideType<T> best,
                               const CudaSpan (&spans)[3], const int (&place)[3]) {
  for (int z = spans[0].begin; z <= place[0]; ++z) {
    const int last_row = z == place[0] ? place[1] : spans[1].end - 1;
    for (int y = spans[1].begin; y <= last_row; ++y) {
      const T* row = channel + z * in.step(0) + y * in.step(1);
      const int end = z == place[0] && y == place[1] ? place[2] : spans[2].end;
      for (int x = spans[2].begin; x < end; ++x) {
        if (IsMaximum(Widened(row[x * in.step(2)]), best)) return false;
      }
    }
  }
  return true;
}

// `input` and `output` are read for maxima only.
template <typename T, bool kIsMax>
__global__ void PoolGrad(CudaPoolingWindows windows, CudaVolume in, CudaVolume out, const T* input,
                         const T* output, const T* output_gradient, T* input_gradient,
                         uint32_t count) {
  const uint32_t stride = gridDim.x * blockDim.x;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    const CudaElement at = in.At(i);
    const int place[3] = {static_cast<int>(at.place[0]), static_cast<int>(at.place[1]),
                          static_cast<int>(at.place[2])};
    const CudaSpan depth = windows.Covering(0, place[0]);
    const CudaSpan height = windows.Covering(1, place[1]);
    const CudaSpan width = windows.Covering(2, place[2]);
    const uint32_t to = out.Channel(at.n, at.c);
    WideType<T> value = 0;
    if constexpr (kIsMax) value = Widened(input[i]);
    WideType<T> sum = 0;
    for (int z = depth.begin; z < depth.end; ++z) {
      for (int y = height.begin; y < height.end; ++y) {
        for (int x = width.begin; x < width.end; ++x) {
          const uint32_t o = to + z * out.step(0) + y * out.step(1) + x * out.step(2);
          if constexpr (kIsMax) {
            const WideType<T> best = Widened(output[o]);
            if (!IsMaximum(value, best)) continue;
            const CudaSpan spans[3] = {windows.At(0, z), windows.At(1, y), windows.At(2, x)};
            const T* channel = input + in.Channel(at.n, at.c);
            if (IsFirstMaximum(in, channel, best, spans, place)) {
              sum += Widened(output_gradient[o]);
            }
          } else {
            const CudaSpan spans[3] = {windows.At(0, z), windows.At(1, y), windows.At(2, x)};
            sum += Widened(output_gradient[o]) / static_cast<WideType<T>>(windows.Divisor(spans));
          }
        }
      }
    }
    input_gradient[i] = Rounded<T>(sum);
  }
}

template <typename T, bool kIsMax>
std::unique_ptr<Kernel> PreparePooling(PrepareContext& context, const CudaPooling& pooling) {
  return MakeKernel([launch = CudaPoolingLaunch(pooling), x = In<T>(context, "X"),
                     out = Out<T>(context, "Out")](const KernelContext& run) {
    launch.ForEachPart([&](int64_t n, int64_t images) {
      const int64_t count = images * launch.output_elements;
      if (count == 0) return;
      const T* input = x(run) + n * launch.input_elements;
      T* output = out(run) + n * launch.output_elements;
      if (launch.shares_windows) {
        PoolLargeWindows<T, kIsMax>
            <<<CudaBlocksOfThreads(count * kCudaWarp), kCudaThreads, 0, StreamOf(run)>>>(
                launch.windows, launch.in, launch.out, input, output, static_cast<uint32_t>(count));
      } else {
        PoolWindows<T, kIsMax><<<CudaBlocksOfThreads(count), kCudaThreads, 0, StreamOf(run)>>>(
            launch.windows, launch.in, launch.out, input, output, static_cast<uint32_t>(count));
      }
      CheckLaunch("pooling");
    });
  });
}

template <typename T, bool kIsMax>
std::unique_ptr<Kernel> PreparePoolingGrad(PrepareContext& context, const CudaPooling& pooling) {
  return MakeKernel([launch = CudaPoolingLaunch(pooling), x = In<T>(context, "X"),
                     out = In<T>(context, "Out"), gradient = In<T>(context, "Out@GRAD"),
                     x_gradient = Out<T>(context, "X@GRAD")](const KernelContext& run) {
    if (!x_gradient.is_there()) return;
    launch.ForEachPart([&](int64_t n, int64_t images) {
      const int64_t count = images * launch.input_elements;
      if (count == 0) return;
      const int64_t from = n * launch.output_elements;
      const int64_t to = n * launch.input_elements;
      PoolGrad<T, kIsMax><<<CudaBlocksOfThreads(count), kCudaThreads, 0, StreamOf(run)>>>(
          launch.windows, launch.in, launch.out, x(run) + to, out(run) + from, gradient(run) + from,
          x_gradient(run) + to, static_cast<uint32_t>(count));
      CheckLaunch("gradient of pooling");
    });
  });
}

template <typename T>
void AddPoolingKernels(OpRegistry& registry, std::string_view type,
                       const std::function<CudaPooling(const OpContext&)>& parse) {
  const auto accepts = [parse](const OpContext& context) {
    const CudaPooling pooling = parse(context);
    return AllPlain(context) && pooling.input_elements() <= kMaxCudaElements &&
           pooling.output_elements() <= kMaxCudaElements;
  };
  registry.AddCudaKernel(
      type, kDTypeOf<T>,
      [parse](PrepareContext& context) {
        const CudaPooling pooling = parse(context);
        return pooling.is_max ? PreparePooling<T, true>(context, pooling)
                              : PreparePooling<T, false>(context, pooling);
      },
      accepts);
  registry.AddCudaKernel(
      StrCat(type, "_grad"), kDTypeOf<T>,
      [parse](PrepareContext& context) {
        const CudaPooling pooling = parse(context);
        return pooling.is_max ? PreparePoolingGrad<T, true>(context, pooling)
                              : PreparePoolingGrad<T, false>(context, pooling);
      },
      accepts);
}

}  // namespace

void AddCudaPooling(OpRegistry& registry, std::string_view type,
                    const std::function<CudaPooling(const OpContext&)>& parse) {
  AddPoolingKernels<float>(registry, type, parse);
  AddPoolingKernels<double>(registry, type, parse);
  AddPoolingKernels<BFloat16>(registry, type, parse);
  AddPoolingKernels<Float16>(registry, type, parse);
}

void RegisterPool2dCuda(OpRegistry& registry) {
  AddCudaPooling(registry, "pool2d", [](const OpContext& context) {
    return CudaPoolingOf(ParsePoolingExtents(context));
  });
}

}  // namespace skiff
