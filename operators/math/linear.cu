// CUDA kernel of linear; linear.cc has the formula.
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda_for_each.cuh"
#include "operators/common/cuda_gemm.h"
#include "operators/math/kernels/matrix_product.h"

namespace skiff {
namespace {

template <typename T>
std::unique_ptr<Kernel> PrepareLinear(PrepareContext& context) {
  const ProductOfShapes product_of = LinearProduct(context);
  CudaGemm<T> gemm(product_of(context.Input("X").shape, context.Input("Y").shape), context);
  const int x = context.InputIndex("X");
  const int y = context.InputIndex("Y");
  const int bias = context.InputIndex("Bias");
  return MakeRowsKernel([=](const KernelContext& run) mutable {
    const Tensor& left = run.input(x);
    const Tensor& right = run.input(y);
    gemm.Run(run, product_of(left.shape(), right.shape()), left.data<T>(), right.data<T>(),
             run.output(0).data<T>(), run.input(bias).data<T>());
  });
}

}  // namespace

void RegisterLinearCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(registry, "linear", [=]<typename T>(PrepareContext& context) {
    return PrepareLinear<T>(context);
  });
}

}  // namespace skiff
