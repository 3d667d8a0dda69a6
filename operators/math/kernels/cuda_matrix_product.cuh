// CUDA kernels of the ops that are one MatrixProduct, and of their gradients.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "framework/base/str_cat.h"
#include "framework/op/registry.h"
#include "operators/common/cuda_gemm.h"
#include "operators/math/kernels/matrix_product.h"

namespace skiff {

template <typename T>
std::unique_ptr<Kernel> PrepareCudaMatrixProduct(PrepareContext& context,
                                                 const MatrixProductOfShapes& product_of) {
  const int x = context.InputIndex("X");
  const int y = context.InputIndex("Y");
  CudaGemm<T> gemm(SpecOf(product_of(context.Input("X").shape, context.Input("Y").shape)), context);
  return MakeRowsKernel([=](const KernelContext& run) mutable {
    const Tensor& left = run.input(x);
    const Tensor& right = run.input(y);
    gemm.Run(run, SpecOf(product_of(left.shape(), right.shape())), left.data<T>(), right.data<T>(),
             run.output(0).data<T>());
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareCudaMatrixProductGrad(PrepareContext& context,
                                                     const MatrixProductOfShapes& product_of) {
  const MatrixProduct prepared = product_of(context.Input("X").shape, context.Input("Y").shape);
  const int x = context.InputIndex("X");
  const int y = context.InputIndex("Y");
  const int dout = context.InputIndex("Out@GRAD");
  const int dx = context.OutputIndex("X@GRAD");
  const int dy = context.OutputIndex("Y@GRAD");
  std::optional<CudaGemm<T>> to_x;
  std::optional<CudaGemm<T>> to_y;
  // A product that nobody reads isn't computed.
  if (dx >= 0) to_x.emplace(GradientOfX(prepared), context);
  if (dy >= 0) to_y.emplace(GradientOfY(prepared), context);
  return MakeRowsKernel([=](const KernelContext& run) mutable {
    const Tensor& left = run.input(x);
    const Tensor& right = run.input(y);
    const MatrixProduct product = product_of(left.shape(), right.shape());
    const T* gradient = run.input(dout).data<T>();
    if (to_x) {
      const T* factor = right.data<T>();
      to_x->Run(run, GradientOfX(product), product.x.transposed ? factor : gradient,
                product.x.transposed ? gradient : factor, run.output(dx).data<T>());
    }
    if (to_y) {
      const T* factor = left.data<T>();
      to_y->Run(run, GradientOfY(product), product.y.transposed ? gradient : factor,
                product.y.transposed ? factor : gradient, run.output(dy).data<T>());
    }
  });
}

template <typename T>
void AddCudaMatrixProductKernels(
    OpRegistry& registry, std::string_view type,
    const std::function<MatrixProductOfShapes(const OpContext&)>& product_of) {
  registry.AddKernel(type, {.name = "cuda",
                            .place = PlaceKind::kCuda,
                            .dtype = kDTypeOf<T>,
                            .prepare =
                                [product_of](PrepareContext& context) {
                                  return PrepareCudaMatrixProduct<T>(context, product_of(context));
                                },
                            .accepts = {}});
  registry.AddKernel(StrCat(type, "_grad"), {.name = "cuda",
                                             .place = PlaceKind::kCuda,
                                             .dtype = kDTypeOf<T>,
                                             .prepare =
                                                 [product_of](PrepareContext& context) {
                                                   return PrepareCudaMatrixProductGrad<T>(
                                                       context, product_of(context));
                                                 },
                                             .accepts = {}});
}

}  // namespace skiff
