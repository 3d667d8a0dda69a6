// CUDA kernels of huber_loss and its gradient; huber_loss.cc has the formulas.
#include <cmath>
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda_for_each.cuh"

namespace skiff {
namespace {

// The residuals may be X, and the losses Y.
template <typename T>
struct HuberLosses {
  __device__ void operator()(int64_t i) const {
    const T r = y[i] - x[i];
    const T size = std::abs(r);
    residuals[i] = r;
    losses[i] = size <= delta ? r * r / 2 : delta * (size - delta / 2);
  }

  const T* x;
  const T* y;
  T* losses;
  T* residuals;
  T delta;
};

template <typename T>
struct HuberGradients {
  __device__ void operator()(int64_t i) const {
    // Comparisons instead of min and max, so that NaN stays NaN.
    const T r = residuals[i];
    const T below = r > delta ? delta : r;
    const T slope = dout[i] * (below < -delta ? -delta : below);
    // Not -slope, which would be -0 where the slope is 0.
    if (dx != nullptr) dx[i] = T{0} - slope;
    if (dy != nullptr) dy[i] = slope;
  }

  const T* residuals;
  const T* dout;
  T* dx;
  T* dy;
  T delta;
};

template <typename T>
std::unique_ptr<Kernel> PrepareHuberLoss(PrepareContext& context) {
  const T delta = static_cast<T>(context.Attr<float>("delta"));
  const int x = context.InputIndex("X");
  const int y = context.InputIndex("Y");
  const int out = context.OutputIndex("Out");
  const int residual = context.OutputIndex("Residual");
  return MakeRowsKernel([=](const KernelContext& run) {
    ForEachOnDevice(
        run, "huber_loss", run.input(x).element_count(),
        HuberLosses<T>{run.input(x).data<T>(), run.input(y).data<T>(), run.output(out).data<T>(),
                       run.output(residual).data<T>(), delta});
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareHuberLossGrad(PrepareContext& context) {
  const T delta = static_cast<T>(context.Attr<float>("delta"));
  const int residual = context.InputIndex("Residual");
  const int dout = context.InputIndex("Out@GRAD");
  const int dx = context.OutputIndex("X@GRAD");
  const int dy = context.OutputIndex("Y@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    ForEachOnDevice(run, "huber_loss_grad", run.input(residual).element_count(),
                    HuberGradients<T>{run.input(residual).data<T>(), run.input(dout).data<T>(),
                                      dx < 0 ? nullptr : run.output(dx).data<T>(),
                                      dy < 0 ? nullptr : run.output(dy).data<T>(), delta});
  });
}

}  // namespace

void RegisterHuberLossCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(registry, "huber_loss", [=]<typename T>(PrepareContext& context) {
    return PrepareHuberLoss<T>(context);
  });
  AddCudaKernels<float, double>(
      registry, "huber_loss_grad",
      [=]<typename T>(PrepareContext& context) { return PrepareHuberLossGrad<T>(context); });
}

}  // namespace skiff
