// CUDA kernels of cross_entropy and its gradient; cross_entropy.cc has the formulas.
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_lines.cuh"
#include "operators/loss/kernels/cuda_labels.cuh"

namespace skiff {
namespace {

template <typename T>
struct HardLosses {
  __device__ void operator()(int64_t row) const {
    const int64_t label = labels.ClassOf(row, true);
    losses[row] = label < 0 ? T{0} : -CudaBoundedLog(x[row * labels.classes + label]);
  }

  const T* x;
  CudaLabels labels;
  T* losses;
};

template <typename T>
struct SoftLosses {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    T loss = 0;
    line.ForEach<T>(group, [&]<int kCount>(int64_t, int64_t at) {
      const CudaValues<T, kCount> values = LoadValues<kCount>(x + at, is_aligned);
      const CudaValues<T, kCount> weights = LoadValues<kCount>(labels + at, is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        // A class of weight 0 contributes nothing, even if its probability is 0.
        if (weights.at[k] != 0) loss -= weights.at[k] * CudaBoundedLog(values.at[k]);
      }
    });
    loss = group.Reduce(loss, JoinBySum{});
    if (group.lane == 0 && line.exists) losses[line.index] = loss;
  }

  const T* x;
  const T* labels;
  T* losses;
  bool is_aligned;
};

// Only one class of a row has a gradient.
template <typename T>
struct HardGradients {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    if (!line.exists) return;
    const int64_t label = labels.ClassOf(line.index, group.lane == 0);
    const T gradient = label < 0 ? T{0} : -dy[line.index] / x[line.start + label];
    line.ForEach<T>(group, [&]<int kCount>(int64_t j, int64_t at) {
      CudaValues<T, kCount> gradients;
#pragma unroll
      for (int k = 0; k < kCount; ++k) gradients.at[k] = j + k == label ? gradient : T{0};
      StoreValues(gradients, is_aligned, dx + at);
    });
  }

  const T* x;
  CudaLabels labels;
  const T* dy;
  T* dx;
  bool is_aligned;
};

template <typename T>
struct SoftGradients {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    if (!line.exists) return;
    const T factor = dy[line.index];
    line.ForEach<T>(group, [&]<int kCount>(int64_t, int64_t at) {
      CudaValues<T, kCount> values = LoadValues<kCount>(x + at, is_aligned);
      const CudaValues<T, kCount> weights = LoadValues<kCount>(labels + at, is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        values.at[k] = weights.at[k] == 0 ? T{0} : -factor * weights.at[k] / values.at[k];
      }
      StoreValues(values, is_aligned, dx + at);
    });
  }

  const T* x;
  const T* labels;
  const T* dy;
  T* dx;
  bool is_aligned;
};

class CrossEntropyLossKernel : public CudaLabelKernel {
 public:
  explicit CrossEntropyLossKernel(const OpContext& context)
      : CudaLabelKernel(context),
        classes_(context.Input("X").shape.dim(-1)),
        soft_(context.Attr<bool>("soft_label")),
        x_(context, "X") {}

  bool AcceptsFewerRows() const override { return true; }

 protected:
  AxisExtents Rows(int64_t count) const { return {.outer = count, .length = classes_}; }
  // Of a vector X, the classes are dim 0.
  int64_t classes_;
  bool soft_;
  In<> x_;
};

template <typename T>
class CrossEntropyForwardKernel final : public CrossEntropyLossKernel {
 public:
  explicit CrossEntropyForwardKernel(const OpContext& context)
      : CrossEntropyLossKernel(context), y_(context, "Y") {}

  void Run(const KernelContext& run) override {
    const T* x = x_.as<T>(run);
    T* losses = y_(run);
    const int64_t rows = y_.count(run);
    if (soft_) {
      const T* labels = SoftLabelsOf<T>(run);
      ForEachLineOnDevice<T>(run, "cross_entropy", Rows(rows),
                             SoftLosses<T>{x, labels, losses, ArePacksAligned(x, labels)});
    } else {
      ForEachOnDevice(run, "cross_entropy", rows,
                      HardLosses<T>{x, LabelsOf(run, classes_), losses});
    }
  }

 private:
  Out<T> y_;
};

template <typename T>
class CrossEntropyGradKernel final : public CrossEntropyLossKernel {
 public:
  explicit CrossEntropyGradKernel(const OpContext& context)
      : CrossEntropyLossKernel(context), gradient_(context, "Y@GRAD"), dx_(context, "X@GRAD") {}

  void Run(const KernelContext& run) override {
    const T* x = x_.as<T>(run);
    const T* dy = gradient_(run);
    T* dx = dx_(run);
    const AxisExtents rows = Rows(gradient_.count(run));
    if (soft_) {
      const T* labels = SoftLabelsOf<T>(run);
      ForEachLineOnDevice<T>(run, "cross_entropy_grad", rows,
                             SoftGradients<T>{x, labels, dy, dx, ArePacksAligned(x, labels, dx)});
    } else {
      ForEachLineOnDevice<T>(
          run, "cross_entropy_grad", rows,
          HardGradients<T>{x, LabelsOf(run, classes_), dy, dx, ArePacksAligned(dx)});
    }
  }

 private:
  In<T> gradient_;
  Out<T> dx_;
};

}  // namespace

void RegisterCrossEntropyCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(
      registry, "cross_entropy",
      [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<CrossEntropyForwardKernel<T>>(context);
      });
  AddCudaKernels<float, double>(
      registry, "cross_entropy_grad",
      [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<CrossEntropyGradKernel<T>>(context);
      });
}

}  // namespace skiff
