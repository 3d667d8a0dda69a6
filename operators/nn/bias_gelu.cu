// CUDA kernels of bias_gelu and its gradient; operators/common/gelu_formula-inl.h has the formulas.
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_fold.cuh"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/formula.h"

namespace skiff {
namespace {

#include "operators/common/gelu_formula-inl.h"

// Out may be X.
template <typename T>
struct BiasGelu {
  template <int kCount>
  __device__ void Do(int64_t i) const {
    auto values = LoadValues<kCount>(x + i, is_aligned);
    // A pack is within a row.
    const auto biases = LoadValues<kCount>(bias + Divide(i, size).rest, is_aligned);
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      values.at[k] = Gelu(values.at[k] + biases.at[k], approximate);
    }
    StoreValues(values, is_aligned, out + i);
  }

  const T* x;
  const T* bias;
  T* out;
  int64_t size;  // of a row
  bool approximate;
  bool is_aligned;
};

// Writes the gradient of X, which may be X, that of Out or nullptr, and sums it up.
template <typename T>
struct BiasGeluGradient {
  using Carry = double;
  static __device__ Carry Identity() { return 0; }
  static __device__ Carry Join(Carry a, Carry b) { return a + b; }
  __device__ void Add(int64_t place, int64_t column, int64_t, Carry* carry) const {
    const WideType<T> slope = GeluSlope(Widened(x[place]) + Widened(bias[column]), approximate);
    const WideType<T> gradient = Widened(dout[place]) * slope;
    if (dx != nullptr) dx[place] = Rounded<T>(gradient);
    *carry += static_cast<double>(gradient);
  }
  __device__ void Finish(int64_t column, Carry sum) const {
    if (dbias != nullptr) dbias[column] = Rounded<T>(static_cast<WideType<T>>(sum));
  }

  const T* x;
  const T* bias;
  const T* dout;
  T* dx;
  T* dbias;
  bool approximate;
};

template <typename T>
std::unique_ptr<Kernel> PrepareBiasGelu(PrepareContext& context) {
  const bool approximate = context.Attr<bool>("approximate");
  const In<T> x(context, "X");
  const In<T> bias(context, "Bias");
  const Out<T> out(context, "Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const Shape& shape = x.shape(run);
    const int64_t size = shape.dim(-1);
    ForEachPackOnDevice<T>(run, "bias_gelu", shape.element_count(), size,
                           BiasGelu<T>{x(run), bias(run), out(run), size, approximate,
                                       ArePacksAligned(x(run), bias(run), out(run))});
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareBiasGeluGrad(PrepareContext& context) {
  const CudaFold<BiasGeluGradient<T>> fold(context, context.Input("X").shape.element_count());
  const bool approximate = context.Attr<bool>("approximate");
  const In<T> x(context, "X");
  const In<T> bias(context, "Bias");
  const In<T> gradient(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  const Out<T> dbias(context, "Bias@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const Shape& shape = x.shape(run);
    fold.Run(run, "bias_gelu_grad",
             CudaFoldView(shape.element_count(0, shape.rank() - 1), shape.dim(-1)),
             {x(run), bias(run), gradient(run), dx(run), dbias(run), approximate});
  });
}

}  // namespace

void RegisterBiasGeluCuda(OpRegistry& registry) {
  AddCudaFloatKernels(registry, "bias_gelu", [=]<typename T>(PrepareContext& context) {
    return PrepareBiasGelu<T>(context);
  });
  AddCudaFloatKernels(registry, "bias_gelu_grad", [=]<typename T>(PrepareContext& context) {
    return PrepareBiasGeluGrad<T>(context);
  });
}

}  // namespace skiff
