// CUDA kernels of sigmoid_cross_entropy_with_logits and its gradient;
// sigmoid_cross_entropy_with_logits.cc has the formulas.
#include <cmath>
#include <cstdint>
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda_fold.cuh"
#include "operators/common/cuda_for_each.cuh"

namespace skiff {
namespace {

// Sets the divisor of the losses to the number of labels that count, and to 1 if there are none.
template <typename T>
struct CountLabels {
  using Carry = int64_t;
  static __device__ Carry Identity() { return 0; }
  static __device__ Carry Join(Carry a, Carry b) { return a + b; }
  __device__ void Add(int64_t place, int64_t, int64_t, Carry* carry) const {
    // Fluid's tolerance.
    if (std::abs(labels[place] - ignored) > static_cast<T>(1e-6)) ++*carry;
  }
  __device__ void Finish(int64_t, Carry count) const {
    *divisor = static_cast<T>(count < 1 ? 1 : count);
  }

  const T* labels;
  T ignored;
  T* divisor;
};

// The losses may be the logits.
template <typename T>
struct SigmoidLosses {
  __device__ void operator()(int64_t i) const {
    const T logit = logits[i];
    const T label = labels[i];
    // log1p is precise even where the exponential is too small to change 1.
    const T curve = std::log1p(std::exp(-std::abs(logit)));
    const T positive = logit < T{0} ? T{0} : logit;
    const T loss = positive - logit * label + (weights == nullptr ? T{1} : weights[i]) * curve;
    const T quotient = divisor == nullptr ? loss : loss / *divisor;
    losses[i] = std::trunc(label) == ignored ? T{0} : quotient;
  }

  const T* logits;
  const T* labels;
  const T* weights;  // 1 if nullptr
  const T* divisor;  // 1 if nullptr
  T ignored;
  T* losses;
};

template <typename T>
struct SigmoidGradients {
  __device__ void operator()(int64_t i) const {
    const T logit = logits[i];
    const T label = labels[i];
    const T tail = std::exp(-std::abs(logit));
    const T share = (weights == nullptr ? T{1} : weights[i]) * (tail / (T{1} + tail));
    const T slope = logit > T{0} ? T{1} - share : share;
    const T gradient = dlosses[i] * (slope - label);
    const T quotient = divisor == nullptr ? gradient : gradient / *divisor;
    gradients[i] = std::trunc(label) == ignored ? T{0} : quotient;
  }

  const T* logits;
  const T* labels;
  const T* weights;  // 1 if nullptr
  const T* divisor;  // 1 if nullptr
  T ignored;
  const T* dlosses;
  T* gradients;
};

// The labels, and the number of them that count.
template <typename T>
class Labels {
 public:
  explicit Labels(PrepareContext& context)
      : ignored_(static_cast<T>(context.IntAttr("ignore_index"))),
        normalize_(context.Attr<bool>("normalize")),
        fold_(context, normalize_ ? context.Input("X").shape.element_count() : 0),
        divisor_(context.RequestWorkspace(sizeof(T))) {}

  T ignored() const { return ignored_; }

  // Returns nullptr for 1.
  const T* DivisorOf(const KernelContext& run, const T* labels, int64_t count) const {
    if (!normalize_) return nullptr;
    auto* divisor = static_cast<T*>(run.workspace(divisor_));
    fold_.Run(run, "number of labels", CudaFoldView(count, 1),
              CountLabels<T>{labels, ignored_, divisor});
    return divisor;
  }

 private:
  T ignored_;
  bool normalize_;
  CudaFold<CountLabels<T>> fold_;
  int divisor_;
};

template <typename T>
std::unique_ptr<Kernel> PrepareSigmoidCrossEntropyWithLogits(PrepareContext& context) {
  const Labels<T> labels(context);
  const int x = context.InputIndex("X");
  const int label = context.InputIndex("Label");
  const int weight = context.InputIndex("pos_weight");
  const int out = context.OutputIndex("Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const int64_t count = run.input(x).element_count();
    const T* targets = run.input(label).data<T>();
    ForEachOnDevice(run, "sigmoid_cross_entropy_with_logits", count,
                    SigmoidLosses<T>{.logits = run.input(x).data<T>(),
                                     .labels = targets,
                                     .weights = weight < 0 ? nullptr : run.input(weight).data<T>(),
                                     .divisor = labels.DivisorOf(run, targets, count),
                                     .ignored = labels.ignored(),
                                     .losses = run.output(out).data<T>()});
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareSigmoidCrossEntropyWithLogitsGrad(PrepareContext& context) {
  const Labels<T> labels(context);
  const int x = context.InputIndex("X");
  const int label = context.InputIndex("Label");
  const int weight = context.InputIndex("pos_weight");
  const int gradient = context.InputIndex("Out@GRAD");
  const int dx = context.OutputIndex("X@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const int64_t count = run.input(x).element_count();
    const T* targets = run.input(label).data<T>();
    ForEachOnDevice(
        run, "sigmoid_cross_entropy_with_logits_grad", count,
        SigmoidGradients<T>{.logits = run.input(x).data<T>(),
                            .labels = targets,
                            .weights = weight < 0 ? nullptr : run.input(weight).data<T>(),
                            .divisor = labels.DivisorOf(run, targets, count),
                            .ignored = labels.ignored(),
                            .dlosses = run.input(gradient).data<T>(),
                            .gradients = run.output(dx).data<T>()});
  });
}

}  // namespace

void RegisterSigmoidCrossEntropyWithLogitsCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(registry, "sigmoid_cross_entropy_with_logits",
                                [=]<typename T>(PrepareContext& context) {
                                  return PrepareSigmoidCrossEntropyWithLogits<T>(context);
                                });
  AddCudaKernels<float, double>(registry, "sigmoid_cross_entropy_with_logits_grad",
                                [=]<typename T>(PrepareContext& context) {
                                  return PrepareSigmoidCrossEntropyWithLogitsGrad<T>(context);
                                });
}

}  // namespace skiff
