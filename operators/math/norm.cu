// CUDA kernels of norm and norm_grad; norm.cc has the formulas.
#include <cmath>
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/argument_data.h"
#include "operators/common/cuda_for_each.cuh"
#include "operators/common/cuda_lines.cuh"

namespace skiff {
namespace {

// `out` may be `x`; `norms` may be absent.
template <typename T>
struct NormalizeLines {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    double squares = 0;
    line.ForEach<T>(group, [&]<int kCount>(int64_t, int64_t at) {
      const CudaValues<T, kCount> values = LoadValues<kCount>(x + at, is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        squares += static_cast<double>(values.at[k] * values.at[k]);
      }
    });
    squares = group.Reduce(squares, JoinBySum{});
    if (!line.exists) return;
    const T norm = std::sqrt(static_cast<T>(squares) + epsilon);
    const T factor = 1 / norm;
    if (group.lane == 0 && norms != nullptr) norms[line.index] = norm;
    line.ForEach<T>(group, [&]<int kCount>(int64_t, int64_t at) {
      CudaValues<T, kCount> values = LoadValues<kCount>(x + at, is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; ++k) values.at[k] *= factor;
      StoreValues(values, is_aligned, out + at);
    });
  }

  const T* x;
  T* out;
  T* norms;
  T epsilon;
  bool is_aligned;
};

// `dx` may be `x` or `dout`.
template <typename T>
struct GradientOfLines {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    double product = 0;
    line.ForEach<T>(group, [&]<int kCount>(int64_t, int64_t at) {
      const CudaValues<T, kCount> xs = LoadValues<kCount>(x + at, is_aligned);
      const CudaValues<T, kCount> douts = LoadValues<kCount>(dout + at, is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; ++k) product += static_cast<double>(xs.at[k] * douts.at[k]);
    });
    product = group.Reduce(product, JoinBySum{});
    if (!line.exists) return;
    const T inverse = 1 / norms[line.index];
    const T x_factor = static_cast<T>(product) * (-inverse * inverse * inverse);
    line.ForEach<T>(group, [&]<int kCount>(int64_t, int64_t at) {
      const CudaValues<T, kCount> xs = LoadValues<kCount>(x + at, is_aligned);
      CudaValues<T, kCount> values = LoadValues<kCount>(dout + at, is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        values.at[k] = values.at[k] * inverse + xs.at[k] * x_factor;
      }
      StoreValues(values, is_aligned, dx + at);
    });
  }

  const T* x;
  const T* norms;
  const T* dout;
  T* dx;
  bool is_aligned;
};

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const int axis = AxisIndex(context, context.Input("X").shape, context.IntAttr("axis"));
  const T epsilon = static_cast<T>(context.Attr<float>("epsilon"));
  const int x_input = context.InputIndex("X");
  const int out_output = context.OutputIndex("Out");
  const int norm_output = context.OutputIndex("Norm");
  return MakeRowsKernel([=](const KernelContext& run) {
    const T* x = run.input(x_input).data<T>();
    T* out = run.output(out_output).data<T>();
    ForEachLineOnDevice<T>(run, "norm", ExtentsOfAxis(run.input(x_input).shape(), axis),
                           NormalizeLines<T>{x, out, OutputData<T>(run, norm_output), epsilon,
                                             ArePacksAligned(x, out)});
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const int axis = AxisIndex(context, context.Input("X").shape, context.IntAttr("axis"));
  const int x_input = context.InputIndex("X");
  const int norm_input = context.InputIndex("Norm");
  const int gradient_input = context.InputIndex("Out@GRAD");
  const int dx_output = context.OutputIndex("X@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const T* x = run.input(x_input).data<T>();
    const T* dout = run.input(gradient_input).data<T>();
    T* dx = run.output(dx_output).data<T>();
    ForEachLineOnDevice<T>(run, "norm_grad", ExtentsOfAxis(run.input(x_input).shape(), axis),
                           GradientOfLines<T>{x, run.input(norm_input).data<T>(), dout, dx,
                                              ArePacksAligned(x, dout, dx)});
  });
}

}  // namespace

void RegisterNormCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(
      registry, "norm", [=]<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  AddCudaKernels<float, double>(registry, "norm_grad", [=]<typename T>(PrepareContext& context) {
    return PrepareGrad<T>(context);
  });
}

}  // namespace skiff
