// CUDA kernels of im2sequence; im2sequence.cc has the formula.
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_division.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/sequence/kernels/cuda_sequences.cuh"
#include "operators/sequence/kernels/image_windows.h"

namespace skiff {
namespace {

// A window of an image, and where its first row and column are.
struct WindowOfRow {
  int64_t image;
  int64_t top;
  int64_t left;

  __device__ WindowOfRow(const ImageWindows& windows, int64_t row) {
    const CudaDivision by_image = Divide(row, windows.per_image());
    const CudaDivision by_line = Divide(by_image.rest, windows.x.windows);
    image = by_image.quotient;
    top = windows.y.FirstOf(by_line.quotient);
    left = windows.x.FirstOf(by_line.rest);
  }
};

template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    CopyWindows(ImageWindows windows, const T* x, int64_t rows, int threads_of_row, T* out) {
  const int64_t width = windows.width();
  ForEachColumn(
      rows, width, threads_of_row, [&](int64_t row) { return WindowOfRow(windows, row); },
      [&](int64_t row, int64_t column, const WindowOfRow& window) {
        const CudaDivision by_line = Divide(column, windows.x.kernel);
        const CudaDivision by_channel = Divide(by_line.quotient, windows.y.kernel);
        const int64_t at_y = window.top + by_channel.rest;
        const int64_t at_x = window.left + by_line.rest;
        T value = 0;
        if (at_y >= 0 && at_y < windows.y.size && at_x >= 0 && at_x < windows.x.size) {
          const int64_t channel = window.image * windows.channels + by_channel.quotient;
          value = x[(channel * windows.y.size + at_y) * windows.x.size + at_x];
        }
        out[row * width + column] = value;
      });
}

// The windows of an axis that contain a place in the image: [first, last).
struct WindowsOfPlace {
  int64_t first;
  int64_t last;

  __device__ WindowsOfPlace(const WindowAxis& axis, int64_t place) {
    const int64_t padded = place + axis.before;
    first = padded < axis.kernel ? 0 : Divide(padded - axis.kernel, axis.stride).quotient + 1;
    last = Divide(padded, axis.stride).quotient + 1;
    if (last > axis.windows) last = axis.windows;
  }
};

// An element of X@GRAD is a sum over windows in their order.
template <typename T>
struct SumWindows {
  ImageWindows windows;
  const T* gradient;
  T* x_gradient;

  __device__ void operator()(int64_t i) const {
    const CudaDivision by_line = Divide(i, windows.x.size);
    const CudaDivision by_channel = Divide(by_line.quotient, windows.y.size);
    const CudaDivision by_image = Divide(by_channel.quotient, windows.channels);
    const int64_t y = by_channel.rest;
    const int64_t x = by_line.rest;
    const WindowsOfPlace of_y(windows.y, y);
    const WindowsOfPlace of_x(windows.x, x);
    const int64_t first_row = by_image.quotient * windows.per_image();
    T sum = 0;
    for (int64_t window_y = of_y.first; window_y < of_y.last; ++window_y) {
      const int64_t line = by_image.rest * windows.y.kernel + (y - windows.y.FirstOf(window_y));
      for (int64_t window_x = of_x.first; window_x < of_x.last; ++window_x) {
        const int64_t row = first_row + window_y * windows.x.windows + window_x;
        const int64_t column = line * windows.x.kernel + (x - windows.x.FirstOf(window_x));
        sum += gradient[row * windows.width() + column];
      }
    }
    x_gradient[i] = sum;
  }
};

template <typename T>
std::unique_ptr<Kernel> PrepareIm2sequence(PrepareContext& context) {
  return MakeRowsKernel([windows = ImageWindowsOf(context), x = In<T>(context, "X"),
                         out = Out<T>(context, "Out")](const KernelContext& run) {
    const int64_t rows = out.shape(run)[0];
    if (rows == 0) return;
    const RowThreads threads(rows, windows.width());
    CopyWindows<T><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(windows, x(run), rows,
                                                                       threads.of_row, out(run));
    CheckLaunch("im2sequence");
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareIm2sequenceGrad(PrepareContext& context) {
  return MakeRowsKernel([windows = ImageWindowsOf(context), out_grad = In<T>(context, "Out@GRAD"),
                         x_grad = Out<T>(context, "X@GRAD")](const KernelContext& run) {
    const SumWindows<T> sum{windows, out_grad(run), x_grad(run)};
    ForEachOnDevice(run, "im2sequence_grad", x_grad.count(run), sum);
  });
}

template <typename T>
void AddIm2sequenceKernels(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "im2sequence", PrepareIm2sequence<T>);
  AddCudaKernel<T>(registry, "im2sequence_grad", PrepareIm2sequenceGrad<T>);
}

}  // namespace

void RegisterIm2sequenceCuda(OpRegistry& registry) {
  AddIm2sequenceKernels<float>(registry);
  AddIm2sequenceKernels<double>(registry);
}

}  // namespace skiff
