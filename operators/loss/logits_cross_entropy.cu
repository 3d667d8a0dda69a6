// CUDA kernels of logits_cross_entropy and its gradient; logits_cross_entropy.cc has the formulas.
#include <cmath>
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/axis_extents.h"
#include "operators/common/cuda/cuda_lines.cuh"
#include "operators/loss/kernels/cuda_labels.cuh"

namespace skiff {
namespace {

template <typename T>
struct LogitsLossOfLines {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    const int64_t label = line.exists ? labels.ClassOf(line.index, group.lane == 0) : -1;
    CudaLine read = line;
    if (label < 0) read.length = 0;
    const SoftmaxTotal<T> total = SoftmaxTotalOf(group, read, logits, is_aligned);
    if (group.lane != 0 || !line.exists) return;
    loss[line.index] =
        label < 0 ? T{0} : std::log(total.sum) + (total.max - logits[line.start + label]);
  }

  const T* logits;
  T* loss;
  CudaLabels labels;
  bool is_aligned;
};

// dx may be `logits`.
template <typename T>
struct LogitsGradientOfLines {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    const int64_t label = line.exists ? labels.ClassOf(line.index, group.lane == 0) : -1;
    // A gradient of 0 is none, even where the probability is no number.
    const T loss = label < 0 ? T{0} : gradient[line.index];
    CudaLine read = line;
    if (loss == 0) read.length = 0;
    const SoftmaxTotal<T> total = SoftmaxTotalOf(group, read, logits, is_aligned);
    if (!line.exists) return;
    const T factor = T{1} / total.sum;
    line.ForEach<T>(group, [&]<int kCount>(int64_t j, int64_t at) {
      CudaValues<T, kCount> gradients{};
      if (loss != 0) {
        gradients = LoadValues<kCount>(logits + at, is_aligned);
#pragma unroll
        for (int k = 0; k < kCount; ++k) {
          const T probability = std::exp(gradients.at[k] - total.max) * factor;
          gradients.at[k] = loss * (probability - (j + k == label ? T{1} : T{0}));
        }
      }
      StoreValues(gradients, is_aligned, dx + at);
    });
  }

  const T* logits;
  const T* gradient;
  T* dx;
  CudaLabels labels;
  bool is_aligned;
};

class LogitsCrossEntropyKernel : public CudaLabelKernel {
 public:
  explicit LogitsCrossEntropyKernel(const OpContext& context)
      : CudaLabelKernel(context), logits_(context, "Logits") {}

  bool TakesFewerRows() const override { return true; }

 protected:
  AxisExtents ExtentsOf(const KernelContext& run) const {
    const Shape& shape = logits_.shape(run);
    return ExtentsOfAxis(shape, shape.rank() - 1);
  }

  In<> logits_;
};

template <typename T>
class LogitsCrossEntropyForwardKernel final : public LogitsCrossEntropyKernel {
 public:
  explicit LogitsCrossEntropyForwardKernel(const OpContext& context)
      : LogitsCrossEntropyKernel(context), loss_(context, "Loss") {}

  void Run(const KernelContext& run) override {
    const AxisExtents extents = ExtentsOf(run);
    const T* logits = logits_.as<T>(run);
    ForEachLineOnDevice<T>(run, "logits_cross_entropy", extents,
                           LogitsLossOfLines<T>{logits, loss_(run), LabelsOf(run, extents.length),
                                                ArePacksAligned(logits)});
  }

 private:
  Out<T> loss_;
};

template <typename T>
class LogitsCrossEntropyGradKernel final : public LogitsCrossEntropyKernel {
 public:
  explicit LogitsCrossEntropyGradKernel(const OpContext& context)
      : LogitsCrossEntropyKernel(context),
        gradient_(context, "Loss@GRAD"),
        dx_(context, "Logits@GRAD") {}

  void Run(const KernelContext& run) override {
    const AxisExtents extents = ExtentsOf(run);
    const T* logits = logits_.as<T>(run);
    T* dx = dx_(run);
    ForEachLineOnDevice<T>(
        run, "logits_cross_entropy_grad", extents,
        LogitsGradientOfLines<T>{logits, gradient_(run), dx, LabelsOf(run, extents.length),
                                 ArePacksAligned(logits, dx)});
  }

 private:
  In<T> gradient_;
  Out<T> dx_;
};

}  // namespace

void RegisterLogitsCrossEntropyCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(
      registry, "logits_cross_entropy",
      [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<LogitsCrossEntropyForwardKernel<T>>(context);
      });
  AddCudaKernels<float, double>(
      registry, "logits_cross_entropy_grad",
      [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<LogitsCrossEntropyGradKernel<T>>(context);
      });
}

}  // namespace skiff
