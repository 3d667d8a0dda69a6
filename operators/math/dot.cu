// CUDA kernels of dot and dot_grad; dot.cc has the formulas.
#include "framework/op/registry.h"
#include "operators/common/cuda_launch.h"
#include "operators/math/kernels/cuda_rows.cuh"

namespace skiff {
namespace {

// A vector is one row.
struct Rows {
  explicit Rows(const Shape& shape)
      : size(shape[shape.rank() - 1]), count(shape.rank() == 1 ? 1 : shape[0]) {}

  int64_t size;
  int64_t count;
};

template <typename T, int kThreads>
__global__ void Dot(const T* x, const T* y, Rows rows, T* out) {
  ForEachRow<kThreads>(rows.count, [&](int64_t row, int thread) {
    const T* a = x + row * rows.size;
    const T* b = y + row * rows.size;
    // In float64, as on the CPU.
    double sum = 0;
    for (int64_t i = thread; i < rows.size; i += kThreads) {
      sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    }
    sum = SumOfThreads<kThreads>(sum);
    if (thread == 0) out[row] = static_cast<T>(sum);
  });
}

// to = each row of `from` times its factor.
template <typename T>
__global__ void ScaleRows(const T* from, const T* factors, Rows rows, T* to) {
  const int64_t count = rows.count * rows.size;
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    to[i] = from[i] * factors[RowOf(i, rows.size)];
  }
}

template <typename T, int kThreads>
void LaunchDot(cudaStream_t stream, const T* x, const T* y, const Rows& rows, T* out) {
  Dot<T, kThreads>
      <<<BlocksOfRows<kThreads>(rows.count), kCudaThreads, 0, stream>>>(x, y, rows, out);
  CheckLaunch("dot");
}

template <typename T>
std::unique_ptr<Kernel> PrepareDot(PrepareContext& context) {
  const int x_input = context.InputIndex("X");
  const int y_input = context.InputIndex("Y");
  return MakeRowsKernel([=](const KernelContext& run) {
    const Rows rows(run.input(x_input).shape());
    if (rows.count == 0) return;
    const T* x = run.input(x_input).data<T>();
    const T* y = run.input(y_input).data<T>();
    T* out = run.output(0).data<T>();
    if (rows.size <= kMaxWarpRow) {
      LaunchDot<T, kWarpThreads>(StreamOf(run), x, y, rows, out);
    } else {
      LaunchDot<T, kCudaThreads>(StreamOf(run), x, y, rows, out);
    }
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareDotGrad(PrepareContext& context) {
  const int x = context.InputIndex("X");
  const int y = context.InputIndex("Y");
  const int gradient = context.InputIndex("Out@GRAD");
  const int dx = context.OutputIndex("X@GRAD");
  const int dy = context.OutputIndex("Y@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const Rows rows(run.input(x).shape());
    const int64_t count = rows.count * rows.size;
    if (count == 0) return;
    const auto scale_rows = [&](int input, int output) {
      if (output < 0) return;
      ScaleRows<T><<<CudaBlocksOfThreads(count), kCudaThreads, 0, StreamOf(run)>>>(
          run.input(input).data<T>(), run.input(gradient).data<T>(), rows,
          run.output(output).data<T>());
      CheckLaunch("dot_grad");
    };
    scale_rows(y, dx);
    scale_rows(x, dy);
  });
}

template <typename T>
void RegisterKernels(OpRegistry& registry) {
  registry.AddKernel("dot", {.name = "cuda",
                             .place = PlaceKind::kCuda,
                             .dtype = kDTypeOf<T>,
                             .prepare = PrepareDot<T>,
                             .accepts = {}});
  registry.AddKernel("dot_grad", {.name = "cuda",
                                  .place = PlaceKind::kCuda,
                                  .dtype = kDTypeOf<T>,
                                  .prepare = PrepareDotGrad<T>,
                                  .accepts = {}});
}

}  // namespace

void RegisterDotCuda(OpRegistry& registry) {
  RegisterKernels<float>(registry);
  RegisterKernels<double>(registry);
}

}  // namespace skiff
