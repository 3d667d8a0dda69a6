// CUDA kernels of squared_l2_norm and squared_l2_norm_grad; squared_l2_norm.cc has the formulas.
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/math/kernels/cuda_scale_by.cuh"
#include "operators/math/kernels/squared_norm.cuh"

namespace skiff {
namespace {

template <typename T>
struct Twice {
  __device__ T operator()() const { return 2 * *gradient; }

  const T* gradient;
};

template <typename T>
std::unique_ptr<Kernel> PrepareSquaredL2NormGrad(PrepareContext& context) {
  return MakeRowsKernel([x = In<>(context, "X"), gradient = In<T>(context, "Out@GRAD"),
                         dx = Out<>(context, "X@GRAD")](const KernelContext& run) {
    ScaleOnDevice<T>(run, "squared_l2_norm_grad", Twice<T>{gradient(run)}, x.tensor(run),
                     &dx.tensor(run));
  });
}

}  // namespace

void RegisterSquaredL2NormCuda(OpRegistry& registry) {
  AddCudaSquaredNormKernels(registry, "squared_l2_norm");
  AddCudaKernels<float, double>(
      registry, "squared_l2_norm_grad",
      [=]<typename T>(PrepareContext& context) { return PrepareSquaredL2NormGrad<T>(context); });
}

}  // namespace skiff
