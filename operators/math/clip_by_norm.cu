// CUDA kernels of clip_by_norm; clip_by_norm.cc has the formula.
#include <cmath>
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda_for_each.cuh"
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

template <typename T>
class ClipByNorm final : public Kernel {
 public:
  explicit ClipByNorm(PrepareContext& context)
      : x_(context.InputIndex("X")),
        out_(context.OutputIndex("Out")),
        max_norm_(static_cast<double>(context.Attr<float>("max_norm"))),
        squares_(context, {context.Input("X").shape.element_count()}),
        sum_(context.RequestWorkspace(sizeof(double))) {}

  void Run(const KernelContext& run) override {
    const Tensor& x = run.input(x_);
    auto* sum = static_cast<double*>(run.workspace(sum_));
    squares_.Locate(0, x);
    squares_.Run(run, sum);
    ScaleOnDevice<T>(run, "clip_by_norm", ClipFactor<T>{sum, max_norm_}, x, &run.output(out_));
  }

 private:
  int x_;
  int out_;
  double max_norm_;
  CudaSquareSums<T> squares_;
  int sum_;
};

}  // namespace

void RegisterClipByNormCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(
      registry, "clip_by_norm",
      [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<ClipByNorm<T>>(context);
      });
}

}  // namespace skiff
