// CUDA kernels of max_pool2d_with_index; max_pool2d_with_index.cc has the formulas.
//
// A thread computes one element, also of the gradient, for which it looks for the windows that the
// element is in. So no two threads add to the same one, and sums have the order of the CPU.
#include <cuda_runtime.h>

#include <limits>
#include <memory>

#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/nn/pooling/cuda_pooling_launch.cuh"

namespace skiff {
namespace {

template <typename T>
__global__ void FindMaxima(CudaPoolingWindows windows, CudaVolume in, CudaVolume out,
                           const T* input, T* output, int32_t* mask, uint32_t count) {
  const uint32_t stride = gridDim.x * blockDim.x;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    const CudaElement at = out.At(i);
    const CudaSpan rows = windows.At(1, at.place[1]);
    const CudaSpan columns = windows.At(2, at.place[2]);
    const T* channel = input + in.Channel(at.n, at.c);
    int place = -1;
    WideType<T> best = std::numeric_limits<WideType<T>>::lowest();
    for (int y = rows.begin; y < rows.end; ++y) {
      for (int x = columns.begin; x < columns.end; ++x) {
        const int pixel = y * static_cast<int>(in.step(1)) + x;
        const WideType<T> value = Widened(channel[pixel]);
        if (place >= 0 && !IsAboveMaximum(value, best)) continue;
        best = value;
        place = pixel;
      }
    }
    output[i] = Rounded<T>(best);
    mask[i] = place;
  }
}

template <typename T>
__global__ void SumAtMaxima(CudaPoolingWindows windows, CudaVolume in, CudaVolume out,
                            const int32_t* mask, const T* output_gradient, T* input_gradient,
                            uint32_t count) {
  const uint32_t stride = gridDim.x * blockDim.x;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    const CudaElement at = in.At(i);
    const CudaSpan rows = windows.Covering(1, at.place[1]);
    const CudaSpan columns = windows.Covering(2, at.place[2]);
    const auto pixel = static_cast<int32_t>(at.place[1] * in.step(1) + at.place[2]);
    const uint32_t to = out.Channel(at.n, at.c);
    WideType<T> sum = 0;
    for (int y = rows.begin; y < rows.end; ++y) {
      for (int x = columns.begin; x < columns.end; ++x) {
        const uint32_t o = to + y * out.step(1) + x;
        if (mask[o] == pixel) sum += Widened(output_gradient[o]);
      }
    }
    input_gradient[i] = Rounded<T>(sum);
  }
}

CudaPooling ParseIndexedOnDevice(const OpContext& context) {
  return CudaPoolingOf(ParseIndexedPooling(context));
}

template <typename T>
std::unique_ptr<Kernel> PrepareMaxima(PrepareContext& context) {
  return MakeKernel([launch = CudaPoolingLaunch(ParseIndexedOnDevice(context)),
                     x = In<T>(context, "X"), out = Out<T>(context, "Out"),
                     mask = Out<int32_t>(context, "Mask")](const KernelContext& run) {
    launch.ForEachPart([&](int64_t n, int64_t images) {
      const int64_t count = images * launch.output_elements;
      if (count == 0) return;
      const int64_t to = n * launch.output_elements;
      FindMaxima<T><<<CudaBlocksOfThreads(count), kCudaThreads, 0, StreamOf(run)>>>(
          launch.windows, launch.in, launch.out, x(run) + n * launch.input_elements, out(run) + to,
          mask(run) + to, static_cast<uint32_t>(count));
      CheckLaunch("max_pool2d_with_index");
    });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareMaximaGrad(PrepareContext& context) {
  return MakeKernel([launch = CudaPoolingLaunch(ParseIndexedOnDevice(context)),
                     mask = In<int32_t>(context, "Mask"), gradient = In<T>(context, "Out@GRAD"),
                     dx = Out<T>(context, "X@GRAD")](const KernelContext& run) {
    launch.ForEachPart([&](int64_t n, int64_t images) {
      const int64_t count = images * launch.input_elements;
      if (count == 0) return;
      const int64_t from = n * launch.output_elements;
      SumAtMaxima<T><<<CudaBlocksOfThreads(count), kCudaThreads, 0, StreamOf(run)>>>(
          launch.windows, launch.in, launch.out, mask(run) + from, gradient(run) + from,
          dx(run) + n * launch.input_elements, static_cast<uint32_t>(count));
      CheckLaunch("gradient of max_pool2d_with_index");
    });
  });
}

template <typename T>
void AddMaximaKernels(OpRegistry& registry) {
  const auto accepts = [](const OpContext& context) {
    const CudaPooling pooling = ParseIndexedOnDevice(context);
    return AllPlain(context) && pooling.input_elements() <= kMaxCudaElements &&
           pooling.output_elements() <= kMaxCudaElements;
  };
  registry.AddCudaKernel("max_pool2d_with_index", kDTypeOf<T>, PrepareMaxima<T>, accepts);
  registry.AddCudaKernel("max_pool2d_with_index_grad", kDTypeOf<T>, PrepareMaximaGrad<T>, accepts);
}

}  // namespace

void RegisterMaxPool2dWithIndexCuda(OpRegistry& registry) {
  AddMaximaKernels<float>(registry);
  AddMaximaKernels<double>(registry);
  AddMaximaKernels<BFloat16>(registry);
  AddMaximaKernels<Float16>(registry);
}

}  // namespace skiff
