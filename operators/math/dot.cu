// CUDA kernels of dot and dot_grad; dot.cc has the formulas.
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_lines.cuh"

namespace skiff {
namespace {

// A vector is one row.
AxisExtents RowsOf(const Shape& shape) {
  return {.outer = shape.rank() == 1 ? 1 : shape[0], .length = shape[shape.rank() - 1]};
}

template <typename T>
struct DotOfRows {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    // In float64, as on the CPU.
    double sum = 0;
    line.ForEach<T>(group, [&]<int kCount>(int64_t, int64_t at) {
      const CudaValues<T, kCount> a = LoadValues<kCount>(x + at, is_aligned);
      const CudaValues<T, kCount> b = LoadValues<kCount>(y + at, is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        sum += static_cast<double>(a.at[k]) * static_cast<double>(b.at[k]);
      }
    });
    sum = group.Reduce(sum, JoinBySum{});
    if (group.lane == 0 && line.exists) out[line.index] = static_cast<T>(sum);
  }

  const T* x;
  const T* y;
  T* out;
  bool is_aligned;
};

// to = each row of `from` times its factor.
template <typename T>
struct ScaledRows {
  __device__ void operator()(int64_t i) const {
    to[i] = from[i] * factors[Divide(i, size).quotient];
  }

  const T* from;
  const T* factors;
  int64_t size;
  T* to;
};

template <typename T>
std::unique_ptr<Kernel> PrepareDot(PrepareContext& context) {
  const In<T> x_input(context, "X");
  const In<T> y_input(context, "Y");
  const Out<T> out(context, "Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const T* x = x_input(run);
    const T* y = y_input(run);
    ForEachLineOnDevice<T>(run, "dot", RowsOf(x_input.shape(run)),
                           DotOfRows<T>{x, y, out(run), ArePacksAligned(x, y)});
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareDotGrad(PrepareContext& context) {
  const In<T> x(context, "X");
  const In<T> y(context, "Y");
  const In<T> gradient(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  const Out<T> dy(context, "Y@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const AxisExtents rows = RowsOf(x.shape(run));
    const auto scale_rows = [&](const In<T>& input, const Out<T>& output) {
      if (!output.is_there()) return;
      ForEachOnDevice(run, "dot_grad", rows.outer * rows.length,
                      ScaledRows<T>{input(run), gradient(run), rows.length, output(run)});
    };
    scale_rows(y, dx);
    scale_rows(x, dy);
  });
}

}  // namespace

void RegisterDotCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(
      registry, "dot", [=]<typename T>(PrepareContext& context) { return PrepareDot<T>(context); });
  AddCudaKernels<float, double>(registry, "dot_grad", [=]<typename T>(PrepareContext& context) {
    return PrepareDotGrad<T>(context);
  });
}

}  // namespace skiff
