// CUDA kernels of softmax_with_cross_entropy and its gradient; softmax_with_cross_entropy.cc has
// the formulas.
#include <cmath>
#include <memory>

#include "framework/op/registry.h"
#include "framework/tensor/shape.h"
#include "operators/common/axis_extents.h"
#include "operators/common/cuda/cuda_lines.cuh"
#include "operators/loss/kernels/cuda_labels.cuh"

namespace skiff {
namespace {

// The arrays of a run. All but the first may be nullptr.
template <typename T>
struct LossArrays {
  const T* logits;
  const T* soft_labels;  // unless they are hard
  T* softmax;            // may be `logits`
  T* loss;

  bool is_aligned() const { return ArePacksAligned(logits, soft_labels, softmax); }
};

// Reads the logits twice: for their sum of exponentials, and for softmax.
template <typename T>
struct HardLossOfLines {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    int64_t label = -1;
    T at_label = 0;
    if (line.exists) {
      label = labels.ClassOf(line.index, group.lane == 0);
      if (label >= 0) at_label = arrays.logits[line.start + label * line.stride];
    }
    group.Sync();  // before softmax overwrites the logits
    const bool zeroes = label < 0 && skips_ignored;
    CudaLine read = line;
    if (label < 0 && (zeroes || arrays.softmax == nullptr)) read.length = 0;
    const SoftmaxTotal<T> total = SoftmaxTotalOf(group, read, arrays.logits, is_aligned);
    if (group.lane == 0 && line.exists && arrays.loss != nullptr) {
      arrays.loss[line.index] = label < 0 ? T{0} : std::log(total.sum) + (total.max - at_label);
    }
    if (arrays.softmax == nullptr) return;
    const T factor = T{1} / total.sum;
    line.ForEach<T>(group, [&]<int kCount>(int64_t, int64_t at) {
      CudaValues<T, kCount> values{};
      if (!zeroes) {
        values = LoadValues<kCount>(arrays.logits + at, is_aligned);
#pragma unroll
        for (int k = 0; k < kCount; ++k) {
          values.at[k] = std::exp(values.at[k] - total.max) * factor;
        }
      }
      StoreValues(values, is_aligned, arrays.softmax + at);
    });
  }

  LossArrays<T> arrays;
  CudaLabels labels;
  bool skips_ignored;
  bool is_aligned;
};

template <typename T>
struct SoftLossOfLines {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    const SoftmaxTotal<T> total = SoftmaxTotalOf(group, line, arrays.logits, is_aligned);
    const T factor = T{1} / total.sum;
    T weight = 0;
    T distance = 0;  // of the labels, from the maximum down
    line.ForEach<T>(group, [&]<int kCount>(int64_t, int64_t at) {
      CudaValues<T, kCount> values = LoadValues<kCount>(arrays.logits + at, is_aligned);
      const CudaValues<T, kCount> weights = LoadValues<kCount>(arrays.soft_labels + at, is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        weight += weights.at[k];
        distance += weights.at[k] * (total.max - values.at[k]);
        values.at[k] = std::exp(values.at[k] - total.max) * factor;
      }
      if (arrays.softmax != nullptr) StoreValues(values, is_aligned, arrays.softmax + at);
    });
    weight = group.Reduce(weight, JoinBySum{});
    distance = group.Reduce(distance, JoinBySum{});
    if (group.lane == 0 && line.exists && arrays.loss != nullptr) {
      // Of no classes the sum is 0, which has no logarithm.
      arrays.loss[line.index] = line.length == 0 ? T{0} : weight * std::log(total.sum) + distance;
    }
  }

  LossArrays<T> arrays;
  bool is_aligned;
};

// The logits are probabilities already.
template <typename T>
struct ProbabilityLossOfLines {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    T loss = 0;
    if (is_soft) {
      line.ForEach<T>(group, [&]<int kCount>(int64_t, int64_t at) {
        const CudaValues<T, kCount> values = LoadValues<kCount>(arrays.logits + at, is_aligned);
        const CudaValues<T, kCount> weights =
            LoadValues<kCount>(arrays.soft_labels + at, is_aligned);
#pragma unroll
        for (int k = 0; k < kCount; ++k) {
          if (weights.at[k] != 0) loss -= weights.at[k] * CudaBoundedLog(values.at[k]);
        }
      });
      loss = group.Reduce(loss, JoinBySum{});
    } else if (group.lane == 0 && line.exists) {
      const int64_t label = labels.ClassOf(line.index, true);
      if (label >= 0) loss = -CudaBoundedLog(arrays.logits[line.start + label * line.stride]);
    }
    if (group.lane == 0 && line.exists && arrays.loss != nullptr) arrays.loss[line.index] = loss;
    if (arrays.softmax == nullptr || arrays.softmax == arrays.logits) return;
    line.ForEach<T>(group, [&]<int kCount>(int64_t, int64_t at) {
      StoreValues(LoadValues<kCount>(arrays.logits + at, is_aligned), is_aligned,
                  arrays.softmax + at);
    });
  }

  LossArrays<T> arrays;
  CudaLabels labels;  // unless they are soft
  bool is_soft;
  bool is_aligned;
};

// dx may be y.
template <typename T>
struct GradientArrays {
  const T* y;
  const T* soft_labels;  // unless they are hard
  const T* loss;
  T* dx;

  bool is_aligned() const { return ArePacksAligned(y, soft_labels, dx); }
};

template <typename T>
struct HardGradientOfLines {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    if (!line.exists) return;
    const int64_t label = labels.ClassOf(line.index, group.lane == 0);
    const T factor = label < 0 ? T{0} : arrays.loss[line.index];
    line.ForEach<T>(group, [&]<int kCount>(int64_t j, int64_t at) {
      CudaValues<T, kCount> gradients{};
      // A factor of 0 stands for no gradient, even where the probability is no number.
      if (use_softmax && factor != 0) {
        gradients = LoadValues<kCount>(arrays.y + at, is_aligned);
#pragma unroll
        for (int k = 0; k < kCount; ++k) {
          gradients.at[k] = factor * (gradients.at[k] - (j + k == label ? T{1} : T{0}));
        }
      } else if (!use_softmax && label >= j && label < j + kCount) {
#pragma unroll
        for (int k = 0; k < kCount; ++k) {
          if (j + k == label) gradients.at[k] = -factor / arrays.y[at + k];
        }
      }
      StoreValues(gradients, is_aligned, arrays.dx + at);
    });
  }

  GradientArrays<T> arrays;
  CudaLabels labels;
  bool use_softmax;
  bool is_aligned;
};

template <typename T>
struct SoftGradientOfLines {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    T weight = 0;
    if (use_softmax) {
      line.ForEach<T>(group, [&]<int kCount>(int64_t, int64_t at) {
        const CudaValues<T, kCount> weights =
            LoadValues<kCount>(arrays.soft_labels + at, is_aligned);
#pragma unroll
        for (int k = 0; k < kCount; ++k) weight += weights.at[k];
      });
      weight = group.Reduce(weight, JoinBySum{});
    }
    if (!line.exists) return;
    const T loss = arrays.loss[line.index];
    line.ForEach<T>(group, [&]<int kCount>(int64_t, int64_t at) {
      CudaValues<T, kCount> values = LoadValues<kCount>(arrays.y + at, is_aligned);
      const CudaValues<T, kCount> weights = LoadValues<kCount>(arrays.soft_labels + at, is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        if (use_softmax) {
          values.at[k] = loss * (values.at[k] * weight - weights.at[k]);
        } else {
          values.at[k] = weights.at[k] == 0 ? T{0} : -loss * weights.at[k] / values.at[k];
        }
      }
      StoreValues(values, is_aligned, arrays.dx + at);
    });
  }

  GradientArrays<T> arrays;
  bool use_softmax;
  bool is_aligned;
};

class SoftmaxLossKernel : public CudaLabelKernel {
 public:
  // `scores` is Logits in the forward op and Softmax in its gradient.
  SoftmaxLossKernel(const OpContext& context, const char* scores)
      : CudaLabelKernel(context),
        scores_(context, scores),
        axis_(NormalizeAxis(context.IntAttr("axis"), context.Input(scores).shape.rank(),
                            context.op().type)),
        soft_(context.Attr<bool>("soft_label")),
        use_softmax_(context.Attr<bool>("use_softmax")) {}

  bool AcceptsFewerRows() const override { return true; }

 protected:
  AxisExtents ExtentsOf(const KernelContext& run) const {
    return ExtentsOfAxis(scores_.shape(run), axis_);
  }

  In<> scores_;
  int axis_;  // of the classes
  bool soft_;
  bool use_softmax_;
};

template <typename T>
class SoftmaxWithCrossEntropyForwardKernel final : public SoftmaxLossKernel {
 public:
  explicit SoftmaxWithCrossEntropyForwardKernel(const OpContext& context)
      : SoftmaxLossKernel(context, "Logits"),
        skip_ignored_(context.Attr<bool>("skip_ignored")),
        softmax_(context, "Softmax"),
        loss_(context, "Loss") {}

  void Run(const KernelContext& run) override {
    const AxisExtents extents = ExtentsOf(run);
    const LossArrays<T> arrays{.logits = scores_.as<T>(run),
                               .soft_labels = soft_ ? SoftLabelsOf<T>(run) : nullptr,
                               .softmax = softmax_(run),
                               .loss = loss_(run)};
    const bool is_aligned = arrays.is_aligned();
    const char* what = "softmax_with_cross_entropy";
    if (!use_softmax_) {
      ForEachLineOnDevice<T>(
          run, what, extents,
          ProbabilityLossOfLines<T>{arrays, soft_ ? CudaLabels{} : LabelsOf(run, extents.length),
                                    soft_, is_aligned});
    } else if (soft_) {
      ForEachLineOnDevice<T>(run, what, extents, SoftLossOfLines<T>{arrays, is_aligned});
    } else {
      ForEachLineOnDevice<T>(run, what, extents,
                             HardLossOfLines<T>{arrays, LabelsOf(run, extents.length),
                                                skip_ignored_ && extents.inner == 1, is_aligned});
    }
  }

 private:
  bool skip_ignored_;
  Out<T> softmax_;
  Out<T> loss_;
};

template <typename T>
class SoftmaxWithCrossEntropyGradKernel final : public SoftmaxLossKernel {
 public:
  explicit SoftmaxWithCrossEntropyGradKernel(const OpContext& context)
      : SoftmaxLossKernel(context, "Softmax"),
        gradient_(context, "Loss@GRAD"),
        dx_(context, "Logits@GRAD") {}

  void Run(const KernelContext& run) override {
    const AxisExtents extents = ExtentsOf(run);
    const GradientArrays<T> arrays{.y = scores_.as<T>(run),
                                   .soft_labels = soft_ ? SoftLabelsOf<T>(run) : nullptr,
                                   .loss = gradient_(run),
                                   .dx = dx_(run)};
    const bool is_aligned = arrays.is_aligned();
    const char* what = "softmax_with_cross_entropy_grad";
    if (soft_) {
      ForEachLineOnDevice<T>(run, what, extents,
                             SoftGradientOfLines<T>{arrays, use_softmax_, is_aligned});
    } else {
      ForEachLineOnDevice<T>(
          run, what, extents,
          HardGradientOfLines<T>{arrays, LabelsOf(run, extents.length), use_softmax_, is_aligned});
    }
  }

 private:
  In<T> gradient_;
  Out<T> dx_;
};

}  // namespace

void RegisterSoftmaxWithCrossEntropyCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(
      registry, "softmax_with_cross_entropy",
      [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<SoftmaxWithCrossEntropyForwardKernel<T>>(context);
      });
  AddCudaKernels<float, double>(
      registry, "softmax_with_cross_entropy_grad",
      [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<SoftmaxWithCrossEntropyGradKernel<T>>(context);
      });
}

}  // namespace skiff
