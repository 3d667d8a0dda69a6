// CUDA kernels of clip_by_norm; clip_by_norm.cc has the formula.
#include <cmath>
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda_fold.cuh"
#include "operators/common/cuda_for_each.cuh"
#include "operators/math/kernels/cuda_line_factors.cuh"
#include "operators/math/kernels/cuda_scale_by.cuh"

namespace skiff {
namespace {

template <typename T>
struct ClipFactor {
  __device__ T operator()() const {
    const double norm = std::sqrt(*squares);
    return norm > max_norm ? static_cast<T>(max_norm / norm) : T{1};
  }

  const double* squares;
  double max_norm;
};

template <typename T>
std::unique_ptr<Kernel> PrepareClipByNorm(PrepareContext& context) {
  const int x_input = context.InputIndex("X");
  const int output = context.OutputIndex("Out");
  const double max_norm = static_cast<double>(context.Attr<float>("max_norm"));
  const CudaFold<CudaLineSum<SquareOf<T>>> fold(context, context.Input("X").shape.element_count());
  const int sum_workspace = context.RequestWorkspace(sizeof(double));
  return MakeRowsKernel([=](const KernelContext& run) {
    const Tensor& x = run.input(x_input);
    auto* const sum = static_cast<double*>(run.workspace(sum_workspace));
    fold.Run(run, "clip_by_norm", ViewOfLines({.length = x.element_count()}), {{x.data<T>()}, sum});
    ScaleOnDevice<T>(run, "clip_by_norm", ClipFactor<T>{sum, max_norm}, x, &run.output(output));
  });
}

}  // namespace

void RegisterClipByNormCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(registry, "clip_by_norm", [=]<typename T>(PrepareContext& context) {
    return PrepareClipByNorm<T>(context);
  });
}

}  // namespace skiff
