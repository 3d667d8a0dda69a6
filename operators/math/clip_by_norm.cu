// CUDA kernels of clip_by_norm; clip_by_norm.cc has the formula.
#include <cmath>
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_fold.cuh"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/math/kernels/cuda_line_factors.cuh"
#include "operators/math/kernels/cuda_scale_by.cuh"
#include "operators/math/kernels/squared_norm.cuh"

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

// Clips by the norm of an array that a run makes of X.
template <typename T>
class NormClip {
 public:
  explicit NormClip(PrepareContext& context)
      : x_(context, "X"),
        out_(context, "Out"),
        max_norm_(static_cast<double>(context.Attr<float>("max_norm"))),
        fold_(context, context.Input("X").shape.element_count()),
        sum_(context.RequestWorkspace(sizeof(double))) {}

  // `values`: as many as X has elements.
  void Run(const KernelContext& run, const T* values) const {
    const Tensor& x = x_.tensor(run);
    auto* const sum = static_cast<double*>(run.workspace(sum_));
    fold_.Run(run, "clip_by_norm", ViewOfLines({.length = x.element_count()}), {{values}, sum});
    ScaleOnDevice<T>(run, "clip_by_norm", ClipFactor<T>{sum, max_norm_}, x, &out_.tensor(run));
  }

 private:
  In<> x_;
  Out<> out_;
  double max_norm_;
  CudaFold<CudaLineSum<SquareOf<T>>> fold_;
  int sum_;
};

template <typename T>
std::unique_ptr<Kernel> PrepareClipByNorm(PrepareContext& context) {
  return MakeRowsKernel([clip = NormClip<T>(context), x = In<T>(context, "X")](
                            const KernelContext& run) { clip.Run(run, x(run)); });
}

template <typename T>
std::unique_ptr<Kernel> PrepareClipRowsByNorm(PrepareContext& context) {
  const In<> x(context, "X");
  return MakeRowsKernel([x, clip = NormClip<T>(context),
                         distinct = CudaDistinctRows<T>(context, context.Input("X")),
                         out = Out<>(context, "Out")](const KernelContext& run) {
    const Tensor& rows = x.tensor(run);
    clip.Run(run, distinct.Make(run, rows));
    CopyRowNumbersOnDevice(run, rows, &out.tensor(run));
  });
}

}  // namespace

void RegisterClipByNormCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(registry, "clip_by_norm", [=]<typename T>(PrepareContext& context) {
    return PrepareClipByNorm<T>(context);
  });
  registry.AddSelectedRowsKernels<float, double>(
      "clip_by_norm",
      [=]<typename T>(PrepareContext& context) { return PrepareClipRowsByNorm<T>(context); },
      PlaceKind::kCuda);
}

}  // namespace skiff
