// CUDA kernels of kldiv_loss and its gradient; kldiv_loss.cc has the formulas.
#include <array>
#include <cstdint>
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_element_formula.cuh"
#include "operators/common/cuda/cuda_fold.cuh"
#include "operators/loss/kernels/kldiv_divisor.h"

namespace skiff {
namespace {

#include "operators/loss/kernels/kldiv_loss_formula-inl.h"

template <typename T>
struct SumOfKldivLosses {
  using Carry = double;
  static __device__ Carry Identity() { return 0; }
  static __device__ Carry Join(Carry a, Carry b) { return a + b; }
  __device__ void Add(int64_t i, int64_t, int64_t, Carry* carry) const {
    *carry += static_cast<double>(formula(x[i], targets[i])[0]);
  }
  __device__ void Finish(int64_t, Carry sum) const { *loss = static_cast<T>(sum / divisor); }

  KldivLossFormula formula;
  const T* x;
  const T* targets;
  T* loss;
  double divisor;
};

template <typename T>
std::unique_ptr<Kernel> PrepareReducedKldivLoss(PrepareContext& context) {
  const KldivLossFormula formula(context);
  const KldivDivisor divisor(context);
  const CudaFold<SumOfKldivLosses<T>> fold(context, context.Input("X").shape.element_count());
  const In<T> x(context, "X");
  const In<T> target(context, "Target");
  const Out<T> loss(context, "Loss");
  return MakeRowsKernel([=](const KernelContext& run) {
    fold.Run(run, "kldiv_loss", CudaFoldView(x.count(run), 1),
             {formula, x(run), target(run), loss(run), divisor.For(x.shape(run))});
  });
}

// The gradients may be the targets.
template <typename T>
struct KldivGradients {
  __device__ void operator()(int64_t i) const {
    gradients[i] = formula(dlosses[i * step] / divisor, targets[i])[0];
  }

  KldivLossGradFormula formula;
  const T* dlosses;
  int64_t step;  // 0: a reduced loss has one gradient for all elements
  const T* targets;
  T* gradients;
  T divisor;
};

template <typename T>
std::unique_ptr<Kernel> PrepareKldivLossGrad(PrepareContext& context) {
  const KldivLossGradFormula formula(context);
  const int64_t step = IsReduced(context) ? 0 : 1;
  const KldivDivisor divisor(context);
  const In<T> dloss(context, "Loss@GRAD");
  const In<T> target(context, "Target");
  const Out<T> dx(context, "X@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    ForEachOnDevice(run, "kldiv_loss_grad", target.count(run),
                    KldivGradients<T>{formula, dloss(run), step, target(run), dx(run),
                                      static_cast<T>(divisor.For(target.shape(run)))});
  });
}

}  // namespace

void RegisterKldivLossCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(registry, "kldiv_loss", [=]<typename T>(PrepareContext& context) {
    return IsReduced(context) ? PrepareReducedKldivLoss<T>(context)
                              : PrepareCudaFormula<KldivLossFormula, T>(context, "kldiv_loss");
  });
  AddCudaKernels<float, double>(
      registry, "kldiv_loss_grad",
      [=]<typename T>(PrepareContext& context) { return PrepareKldivLossGrad<T>(context); });
}

}  // namespace skiff
