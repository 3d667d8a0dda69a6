// CUDA kernels of log_loss and its gradient; log_loss.cc has the formulas.
#include <cmath>
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda_for_each.cuh"

namespace skiff {
namespace {

template <typename T>
struct LogLosses {
  __device__ void operator()(int64_t i) const {
    const T p = predicted[i];
    const T label = labels[i];
    losses[i] = -label * std::log(p + epsilon) - (T{1} - label) * std::log(T{1} - p + epsilon);
  }

  const T* predicted;
  const T* labels;
  T* losses;
  T epsilon;
};

template <typename T>
struct LogLossGradients {
  __device__ void operator()(int64_t i) const {
    const T p = predicted[i];
    const T label = labels[i];
    // The term of the label 0, whose loss rises with the probability.
    const T rising = (T{1} - label) / (T{1} - p + epsilon);
    gradients[i] = dlosses[i] * (rising - label / (p + epsilon));
  }

  const T* predicted;
  const T* labels;
  const T* dlosses;
  T* gradients;
  T epsilon;
};

template <typename T>
std::unique_ptr<Kernel> PrepareLogLoss(PrepareContext& context) {
  const T epsilon = static_cast<T>(context.Attr<float>("epsilon"));
  const int predicted = context.InputIndex("Predicted");
  const int labels = context.InputIndex("Labels");
  const int loss = context.OutputIndex("Loss");
  return MakeRowsKernel([=](const KernelContext& run) {
    ForEachOnDevice(run, "log_loss", run.input(predicted).element_count(),
                    LogLosses<T>{run.input(predicted).data<T>(), run.input(labels).data<T>(),
                                 run.output(loss).data<T>(), epsilon});
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareLogLossGrad(PrepareContext& context) {
  const T epsilon = static_cast<T>(context.Attr<float>("epsilon"));
  const int predicted = context.InputIndex("Predicted");
  const int labels = context.InputIndex("Labels");
  const int gradient = context.InputIndex("Loss@GRAD");
  const int output = context.OutputIndex("Predicted@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    ForEachOnDevice(
        run, "log_loss_grad", run.input(predicted).element_count(),
        LogLossGradients<T>{run.input(predicted).data<T>(), run.input(labels).data<T>(),
                            run.input(gradient).data<T>(), run.output(output).data<T>(), epsilon});
  });
}

}  // namespace

void RegisterLogLossCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(registry, "log_loss", [=]<typename T>(PrepareContext& context) {
    return PrepareLogLoss<T>(context);
  });
  AddCudaKernels<float, double>(
      registry, "log_loss_grad",
      [=]<typename T>(PrepareContext& context) { return PrepareLogLossGrad<T>(context); });
}

}  // namespace skiff
