// CUDA kernel of linear; linear.cc has the formula.
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_gemm.h"
#include "operators/common/cuda/cuda_product_kernels.h"
#include "operators/math/kernels/matrix_product.h"

namespace skiff {
namespace {

template <typename T>
std::unique_ptr<Kernel> PrepareLinear(PrepareContext& context) {
  const ProductOfShapes product_of = LinearProduct(context);
  CudaGemm<T> gemm(product_of(context.Input("X").shape, context.Input("Y").shape), context);
  const In<T> x(context, "X");
  const In<T> y(context, "Y");
  const In<T> bias(context, "Bias");
  const Out<T> out(context, "Out");
  return MakeRowsKernel([=](const KernelContext& run) mutable {
    gemm.Run(run, product_of(x.shape(run), y.shape(run)), x(run), y(run), out(run), bias(run));
  });
}

}  // namespace

void RegisterLinearCuda(OpRegistry& registry) {
  AddCudaProductKernels(registry, "linear", [=]<typename T>(PrepareContext& context) {
    return PrepareLinear<T>(context);
  });
}

}  // namespace skiff
