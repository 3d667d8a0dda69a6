// CUDA kernels of bilinear_interp_v2 and nearest_interp_v2; kernels/interpolation.h has the
// formula.
//
// A thread computes one pixel, also of the gradient: it looks for the pixels of the output that
// were blended from it, which are a range along each axis.
#include <cuda_runtime.h>

#include <algorithm>
#include <memory>

#include "framework/base/str_cat.h"
#include "framework/op/arguments.h"
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/nn/interpolation/resizing.h"
#include "operators/nn/kernels/cuda_volume.cuh"

namespace skiff {
namespace {

// The rows and the columns.
struct Axes {
  ResizedAxis of[2];
};

template <typename T, Interpolation kMethod>
__global__ void Resize(Axes axes, CudaVolume in, CudaVolume out, const T* input, T* output,
                       uint32_t count) {
  const uint32_t stride = gridDim.x * blockDim.x;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    const CudaElement at = out.At(i);
    const T* channel = input + in.Channel(at.n, at.c);
    const Blend rows = BlendOf(axes.of[0], kMethod, at.place[1]);
    const Blend columns = BlendOf(axes.of[1], kMethod, at.place[2]);
    const T* top = channel + rows.low * in.step(1);
    const int64_t left = columns.low * in.step(2);
    if constexpr (kMethod == Interpolation::kNearest) {
      // A copy, not a blend of weight 0: 0 times an infinite pixel would be NaN.
      output[i] = top[left];
    } else {
      const T* bottom = channel + rows.high * in.step(1);
      const int64_t right = columns.high * in.step(2);
      const auto down = static_cast<T>(rows.weight);
      const auto across = static_cast<T>(columns.weight);
      const T above = top[left] * (1 - across) + top[right] * across;
      const T below = bottom[left] * (1 - across) + bottom[right] * across;
      output[i] = above * (1 - down) + below * down;
    }
  }
}

struct Range {
  int64_t begin;
  int64_t end;
};

// Returns the first output pixel whose lower input pixel is at least `least`. The later an output
// pixel, the later its input pixels.
template <Interpolation kMethod>
__device__ int64_t FirstFrom(const ResizedAxis& axis, int64_t least) {
  int64_t begin = 0;
  int64_t end = axis.outputs;
  while (begin < end) {
    const int64_t middle = (begin + end) / 2;
    if (BlendOf(axis, kMethod, middle).low < least) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

// Returns the output pixels that an input pixel is blended into.
template <Interpolation kMethod>
__device__ Range BlendedInto(const ResizedAxis& axis, int64_t pixel) {
  const int64_t lowest = kMethod == Interpolation::kNearest ? pixel : pixel - 1;
  return {FirstFrom<kMethod>(axis, lowest), FirstFrom<kMethod>(axis, pixel + 1)};
}

// Returns the weight of an input pixel in a blend that it is part of.
template <typename T>
__device__ T WeightOf(const Blend& blend, int64_t pixel) {
  const auto weight = static_cast<T>(blend.weight);
  return blend.low == pixel ? 1 - weight : weight;
}

template <typename T, Interpolation kMethod>
__global__ void ResizeGrad(Axes axes, CudaVolume in, CudaVolume out, const T* output_gradient,
                           T* input_gradient, uint32_t count) {
  const uint32_t stride = gridDim.x * blockDim.x;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    const CudaElement at = in.At(i);
    const T* channel = output_gradient + out.Channel(at.n, at.c);
    const Range rows = BlendedInto<kMethod>(axes.of[0], at.place[1]);
    const Range columns = BlendedInto<kMethod>(axes.of[1], at.place[2]);
    T sum = 0;
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      const T* row = channel + y * out.step(1);
      const T down = WeightOf<T>(BlendOf(axes.of[0], kMethod, y), at.place[1]);
      for (int64_t x = columns.begin; x < columns.end; ++x) {
        const T gradient = row[x * out.step(2)];
        if constexpr (kMethod == Interpolation::kNearest) {
          sum += gradient;
        } else {
          sum += gradient * down * WeightOf<T>(BlendOf(axes.of[1], kMethod, x), at.place[2]);
        }
      }
    }
    input_gradient[i] = sum;
  }
}

// A resizing as kernels see it.
struct ResizingLaunch {
  explicit ResizingLaunch(const OpContext& context, const Resizing& resizing)
      : batch(resizing.input.batch),
        input_elements(ElementsOf(resizing.input)),
        output_elements(ElementsOf(resizing.output)),
        axes{{ResizedAxisOf(resizing, 0), ResizedAxisOf(resizing, 1)}},
        in(VolumeOf(resizing.input, resizing.order)),
        out(VolumeOf(resizing.output, resizing.order)) {
    SKIFF_ENFORCE(resizing.input.size[0] > 0 && resizing.input.size[1] > 0, kInvalidArgument,
                  context.op().type, ": X of shape ", context.Input("X").shape,
                  " has no pixels, expected at least one");
  }

  // Of an image.
  static int64_t ElementsOf(const ImageDims& image) {
    return image.channels * image.size[0] * image.size[1];
  }
  static CudaVolume VolumeOf(const ImageDims& image, ChannelOrder order) {
    return CudaVolume(image.channels, {1, image.size[0], image.size[1]},
                      order == ChannelOrder::kLast);
  }

  template <typename Function>
  void ForEachPart(const Function& launch) const {
    ForEachCudaPart(batch, std::max(input_elements, output_elements), launch);
  }

  int64_t batch;
  int64_t input_elements;
  int64_t output_elements;
  Axes axes;
  CudaVolume in;
  CudaVolume out;
};

template <typename T, Interpolation kMethod>
std::unique_ptr<Kernel> PrepareResizing(PrepareContext& context, const InterpolationOp& op) {
  return MakeKernel([launch = ResizingLaunch(context, ParseResizing(context, op)),
                     x = In<T>(context, "X"),
                     out = Out<T>(context, "Out")](const KernelContext& run) {
    launch.ForEachPart([&](int64_t n, int64_t images) {
      const int64_t count = images * launch.output_elements;
      if (count == 0) return;
      Resize<T, kMethod><<<CudaBlocksOfThreads(count), kCudaThreads, 0, StreamOf(run)>>>(
          launch.axes, launch.in, launch.out, x(run) + n * launch.input_elements,
          out(run) + n * launch.output_elements, static_cast<uint32_t>(count));
      CheckLaunch("interpolation");
    });
  });
}

template <typename T, Interpolation kMethod>
std::unique_ptr<Kernel> PrepareResizingGrad(PrepareContext& context, const InterpolationOp& op) {
  return MakeKernel([launch = ResizingLaunch(context, ParseResizing(context, op)),
                     gradient = In<T>(context, "Out@GRAD"),
                     x_gradient = Out<T>(context, "X@GRAD")](const KernelContext& run) {
    launch.ForEachPart([&](int64_t n, int64_t images) {
      const int64_t count = images * launch.input_elements;
      if (count == 0) return;
      ResizeGrad<T, kMethod><<<CudaBlocksOfThreads(count), kCudaThreads, 0, StreamOf(run)>>>(
          launch.axes, launch.in, launch.out, gradient(run) + n * launch.output_elements,
          x_gradient(run) + n * launch.input_elements, static_cast<uint32_t>(count));
      CheckLaunch("gradient of interpolation");
    });
  });
}

template <typename T, Interpolation kMethod>
void AddResizingKernels(OpRegistry& registry, std::string_view type, const InterpolationOp& op) {
  const auto accepts = [op](const OpContext& context) {
    const Resizing resizing = ParseResizing(context, op);
    return AllPlain(context) && ResizingLaunch::ElementsOf(resizing.input) <= kMaxCudaElements &&
           ResizingLaunch::ElementsOf(resizing.output) <= kMaxCudaElements;
  };
  registry.AddCudaKernel(
      type, kDTypeOf<T>,
      [op](PrepareContext& context) { return PrepareResizing<T, kMethod>(context, op); }, accepts);
  registry.AddCudaKernel(
      StrCat(type, "_grad"), kDTypeOf<T>,
      [op](PrepareContext& context) { return PrepareResizingGrad<T, kMethod>(context, op); },
      accepts);
}

}  // namespace

void AddCudaInterpolation(OpRegistry& registry, std::string_view type, const InterpolationOp& op) {
  if (op.method == Interpolation::kNearest) {
    AddResizingKernels<float, Interpolation::kNearest>(registry, type, op);
    AddResizingKernels<double, Interpolation::kNearest>(registry, type, op);
  } else {
    AddResizingKernels<float, Interpolation::kBilinear>(registry, type, op);
    AddResizingKernels<double, Interpolation::kBilinear>(registry, type, op);
  }
}

void RegisterBilinearInterpV2Cuda(OpRegistry& registry) {
  AddCudaInterpolation(registry, "bilinear_interp_v2",
                       {Interpolation::kBilinear, InterpolationVersion::kSecond});
}

}  // namespace skiff
