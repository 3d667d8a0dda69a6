// CUDA kernels of kldiv_loss and its gradient; kldiv_loss.cc has the formulas.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/common/cuda_fold.cuh"
#include "operators/common/cuda_for_each.cuh"

namespace skiff {
namespace {

bool IsReduced(const OpContext& context) {
  return context.Attr<std::string>("reduction") != "none";
}

// The divisor of the sum of the losses.
class Divisor {
 public:
  explicit Divisor(const OpContext& context)
      : type_(context.def().type),
        by_elements_(context.Attr<std::string>("reduction") == "mean"),
        by_rows_(context.Attr<std::string>("reduction") == "batchmean") {
    // What is wrong is found before any run.
    For(context.Input("Target").shape);
  }

  // Throws Error if it is 0.
  double For(const Shape& shape) const {
    if (!by_elements_ && !by_rows_) return 1;
    SKIFF_ENFORCE(shape.element_count() > 0, kInvalidArgument, type_, ": X of shape ", shape,
                  " has no elements, expected at least one for reduction ",
                  by_elements_ ? "mean" : "batchmean");
    return static_cast<double>(by_elements_ ? shape.element_count() : shape[0]);
  }

 private:
  StaticText type_;
  bool by_elements_;
  bool by_rows_;
};

template <typename T>
struct KldivLosses {
  __device__ T At(int64_t i) const {
    const T target = targets[i];
    return target > T{0} ? target * (std::log(target) - x[i]) : T{0};
  }
  __device__ void operator()(int64_t i) const { losses[i] = At(i); }

  const T* x;
  const T* targets;
  T* losses;
};

template <typename T>
struct SumOfLosses {
  using Carry = double;
  static __device__ Carry Identity() { return 0; }
  static __device__ Carry Join(Carry a, Carry b) { return a + b; }
  __device__ void Add(int64_t i, int64_t, int64_t, Carry* carry) const {
    *carry += static_cast<double>(of.At(i));
  }
  __device__ void Finish(int64_t, Carry sum) const { *of.losses = static_cast<T>(sum / divisor); }

  KldivLosses<T> of;
  double divisor;
};

// The gradients may be the targets.
template <typename T>
struct KldivGradients {
  __device__ void operator()(int64_t i) const {
    const T target = targets[i];
    const T slope = dlosses[i * step] / divisor * -target;
    // The loss is constant where Target is 0 or below.
    gradients[i] = target > T{0} ? slope : T{0};
  }

  const T* dlosses;
  const T* targets;
  T* gradients;
  T divisor;
  int64_t step;
};

template <typename T>
std::unique_ptr<Kernel> PrepareKldivLoss(PrepareContext& context) {
  const int x = context.InputIndex("X");
  const int target = context.InputIndex("Target");
  const int output = context.OutputIndex("Loss");
  const auto losses_of = [=](const KernelContext& run) {
    return KldivLosses<T>{run.input(x).data<T>(), run.input(target).data<T>(),
                          run.output(output).data<T>()};
  };
  if (!IsReduced(context)) {
    return MakeRowsKernel([=](const KernelContext& run) {
      ForEachOnDevice(run, "kldiv_loss", run.input(x).element_count(), losses_of(run));
    });
  }
  const Divisor divisor(context);
  const CudaFold<SumOfLosses<T>> fold(context, context.Input("X").shape.element_count());
  return MakeRowsKernel([=](const KernelContext& run) {
    fold.Run(run, "kldiv_loss", CudaFoldView(run.input(x).element_count(), 1),
             {losses_of(run), divisor.For(run.input(x).shape())});
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareKldivLossGrad(PrepareContext& context) {
  // A reduced loss has one gradient for all elements.
  const int64_t step = IsReduced(context) ? 0 : 1;
  const Divisor divisor_of(context);
  const int gradient = context.InputIndex("Loss@GRAD");
  const int target = context.InputIndex("Target");
  const int dx = context.OutputIndex("X@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const T divisor = static_cast<T>(divisor_of.For(run.input(target).shape()));
    ForEachOnDevice(run, "kldiv_loss_grad", run.input(target).element_count(),
                    KldivGradients<T>{run.input(gradient).data<T>(), run.input(target).data<T>(),
                                      run.output(dx).data<T>(), divisor, step});
  });
}

}  // namespace

void RegisterKldivLossCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(registry, "kldiv_loss", [=]<typename T>(PrepareContext& context) {
    return PrepareKldivLoss<T>(context);
  });
  AddCudaKernels<float, double>(
      registry, "kldiv_loss_grad",
      [=]<typename T>(PrepareContext& context) { return PrepareKldivLossGrad<T>(context); });
}

}  // namespace skiff
