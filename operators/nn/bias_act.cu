// CUDA kernels of bias_act and its gradient; bias_act.cc has the formulas.
#include <memory>

#include "framework/op/registry.h"
#include "operators/nn/kernels/cuda_channels.cuh"

namespace skiff {
namespace {

// Out may be X.
template <typename T>
struct AddBiasAndRectify {
  template <int kCount>
  __device__ void Do(int64_t i) const {
    auto values = LoadValues<kCount>(x + i, is_aligned);
    const int64_t c = channels.ChannelOf(i);
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      values.at[k] += Widened(bias[channels.is_last ? c + k : c]);
      // The comparison keeps NaN.
      if (values.at[k] < 0) values.at[k] = 0;
    }
    StoreValues(values, is_aligned, out + i);
  }

  CudaChannels channels;
  const T* x;
  const T* bias;
  T* out;
  bool is_aligned;
};

// Writes the gradient of X, which may be that of Out or nullptr, and sums it up.
template <typename T>
struct BiasActGradient {
  using Carry = double;
  static __device__ Carry Identity() { return 0; }
  static __device__ Carry Join(Carry a, Carry b) { return a + b; }
  __device__ void Add(int64_t place, int64_t, int64_t, Carry* carry) const {
    const WideType<T> gradient = Widened(out[place]) > 0 ? Widened(dout[place]) : 0;
    if (dx != nullptr) dx[place] = Rounded<T>(gradient);
    *carry += static_cast<double>(gradient);
  }
  __device__ void Finish(int64_t channel, Carry sum) const {
    if (dbias != nullptr) dbias[channel] = Rounded<T>(static_cast<WideType<T>>(sum));
  }

  const T* out;
  const T* dout;
  T* dx;
  T* dbias;
};

// The channels of a run, whose batch may be smaller than that of the context.
CudaChannels OfBatch(CudaChannels channels, const Shape& images) {
  channels.batch = images[0];
  return channels;
}

template <typename T>
std::unique_ptr<Kernel> PrepareBiasAct(PrepareContext& context) {
  const CudaChannels prepared(context, context.Input("X").shape);
  const In<T> x(context, "X");
  const In<T> bias(context, "Bias");
  const Out<T> out(context, "Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const CudaChannels channels = OfBatch(prepared, x.shape(run));
    ForEachPackOnDevice<T>(run, "bias_act", channels.elements(), channels.period(),
                           AddBiasAndRectify<T>{channels, x(run), bias(run), out(run),
                                                ArePacksAligned(x(run), out(run))});
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareBiasActGrad(PrepareContext& context) {
  const CudaChannels prepared(context, context.Input("Out").shape);
  const CudaFold<BiasActGradient<T>> fold(context, prepared.elements());
  const In<T> out(context, "Out");
  const In<T> gradient(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  const Out<T> dbias(context, "Bias@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    fold.Run(run, "bias_act_grad", OfBatch(prepared, out.shape(run)).View(),
             {out(run), gradient(run), dx(run), dbias(run)});
  });
}

}  // namespace

void RegisterBiasActCuda(OpRegistry& registry) {
  AddCudaFloatKernels(registry, "bias_act", [=]<typename T>(PrepareContext& context) {
    return PrepareBiasAct<T>(context);
  });
  AddCudaFloatKernels(registry, "bias_act_grad", [=]<typename T>(PrepareContext& context) {
    return PrepareBiasActGrad<T>(context);
  });
}

}  // namespace skiff
