// CUDA kernels of the ops that are a MatrixProduct, and of their gradients.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "framework/base/str_cat.h"
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_gemm.h"
#include "operators/common/cuda/cuda_product_kernels.h"
#include "operators/math/kernels/matrix_product.h"

namespace skiff {

template <typename T>
std::unique_ptr<Kernel> PrepareCudaMatrixProduct(PrepareContext& context,
                                                 const MatrixProductOfShapes& product_of) {
  const In<T> x(context, "X");
  const In<T> y(context, "Y");
  const Out<T> out(context, "Out");
  CudaGemm<T> gemm(SpecOf(product_of(context.Input("X").shape, context.Input("Y").shape)), context);
  return MakeRowsKernel([=](const KernelContext& run) mutable {
    gemm.Run(run, SpecOf(product_of(x.shape(run), y.shape(run))), x(run), y(run), out(run));
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareCudaMatrixProductGrad(PrepareContext& context,
                                                     const MatrixProductOfShapes& product_of) {
  const MatrixProduct prepared = product_of(context.Input("X").shape, context.Input("Y").shape);
  const In<T> x(context, "X");
  const In<T> y(context, "Y");
  const In<T> dout(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  const Out<T> dy(context, "Y@GRAD");
  std::optional<CudaGemm<T>> to_x;
  std::optional<CudaGemm<T>> to_y;
  // A product that nobody reads isn't computed.
  if (dx.is_there()) to_x.emplace(GradientOfX(prepared), context);
  if (dy.is_there()) to_y.emplace(GradientOfY(prepared), context);
  return MakeRowsKernel([=](const KernelContext& run) mutable {
    const MatrixProduct product = product_of(x.shape(run), y.shape(run));
    const T* gradient = dout(run);
    if (to_x) {
      to_x->Run(run, GradientOfX(product), product.x.transposed ? y(run) : gradient,
                product.x.transposed ? gradient : y(run), dx(run));
    }
    if (to_y) {
      to_y->Run(run, GradientOfY(product), product.y.transposed ? gradient : x(run),
                product.y.transposed ? x(run) : gradient, dy(run));
    }
  });
}

inline void AddCudaMatrixProductKernels(
    OpRegistry& registry, std::string_view type,
    MatrixProductOfShapes (*product_of)(const OpContext& context)) {
  AddCudaProductKernels(registry, type, [product_of]<typename T>(PrepareContext& context) {
    return PrepareCudaMatrixProduct<T>(context, product_of(context));
  });
  AddCudaProductKernels(registry, StrCat(type, "_grad"),
                        [product_of]<typename T>(PrepareContext& context) {
                          return PrepareCudaMatrixProductGrad<T>(context, product_of(context));
                        });
}

}  // namespace skiff
