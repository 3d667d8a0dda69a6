// CUDA kernels of cross_entropy2 and its gradient; cross_entropy2.cc has the formulas.
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_lines.cuh"
#include "operators/loss/kernels/cuda_labels.cuh"

namespace skiff {
namespace {

template <typename T>
struct CrossEntropy2Losses {
  __device__ void operator()(int64_t row) const {
    const int64_t label = labels.ClassOf(row, true);
    const T match = label < 0 ? T{0} : x[row * labels.classes + label];
    matches[row] = match;
    losses[row] = label < 0 ? T{0} : -CudaBoundedLog(match);
  }

  const T* x;
  CudaLabels labels;
  T* losses;
  T* matches;
};

// Only one class of a row has a gradient.
template <typename T>
struct CrossEntropy2Gradients {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    if (!line.exists) return;
    const int64_t label = labels.ClassOf(line.index, group.lane == 0);
    const T gradient = label < 0 ? T{0} : -dy[line.index] / matches[line.index];
    line.ForEach<T>(group, [&]<int kCount>(int64_t j, int64_t at) {
      CudaValues<T, kCount> gradients;
#pragma unroll
      for (int k = 0; k < kCount; ++k) gradients.at[k] = j + k == label ? gradient : T{0};
      StoreValues(gradients, is_aligned, dx + at);
    });
  }

  CudaLabels labels;
  const T* matches;
  const T* dy;
  T* dx;
  bool is_aligned;
};

template <typename T>
class CrossEntropy2ForwardKernel final : public CudaLabelKernel {
 public:
  explicit CrossEntropy2ForwardKernel(const OpContext& context)
      : CudaLabelKernel(context),
        classes_(context.Input("X").shape.dim(-1)),
        x_(context, "X"),
        y_(context, "Y"),
        match_(context, "MatchX") {}

  void Run(const KernelContext& run) override {
    ForEachOnDevice(run, "cross_entropy2", y_.count(run),
                    CrossEntropy2Losses<T>{x_(run), LabelsOf(run, classes_), y_(run), match_(run)});
  }

 private:
  int64_t classes_;
  In<T> x_;
  Out<T> y_;
  Out<T> match_;
};

template <typename T>
class CrossEntropy2GradKernel final : public CudaLabelKernel {
 public:
  explicit CrossEntropy2GradKernel(const OpContext& context)
      : CudaLabelKernel(context),
        classes_(context.Output("X@GRAD").shape.dim(-1)),
        match_(context, "MatchX"),
        gradient_(context, "Y@GRAD"),
        dx_(context, "X@GRAD") {}

  void Run(const KernelContext& run) override {
    T* dx = dx_(run);
    ForEachLineOnDevice<T>(run, "cross_entropy_grad2",
                           {.outer = gradient_.count(run), .length = classes_},
                           CrossEntropy2Gradients<T>{LabelsOf(run, classes_), match_(run),
                                                     gradient_(run), dx, ArePacksAligned(dx)});
  }

 private:
  int64_t classes_;
  In<T> match_;
  In<T> gradient_;
  Out<T> dx_;
};

}  // namespace

void RegisterCrossEntropy2Cuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(
      registry, "cross_entropy2",
      [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<CrossEntropy2ForwardKernel<T>>(context);
      });
  AddCudaKernels<float, double>(
      registry, "cross_entropy_grad2",
      [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<CrossEntropy2GradKernel<T>>(context);
      });
}

}  // namespace skiff
