// CUDA kernels of sigmoid_cross_entropy_with_logits and its gradient;
// sigmoid_cross_entropy_with_logits.cc has the formulas.
#include <cstdint>

#include "framework/op/registry.h"
#include "operators/common/cuda_fold.cuh"
#include "operators/common/cuda_for_each.cuh"
#include "operators/loss/kernels/sigmoid_loss_formula.h"

namespace skiff {
namespace {

// Sets the divisor of the losses to the number of labels that count, and to 1 if there are none.
template <typename T>
struct LabelCount {
  using Carry = int64_t;
  static __device__ Carry Identity() { return 0; }
  static __device__ Carry Join(Carry a, Carry b) { return a + b; }
  __device__ void Add(int64_t place, int64_t, int64_t, Carry* carry) const {
    if (of.IsCounted(labels[place])) ++*carry;
  }
  __device__ void Finish(int64_t, Carry count) const {
    *divisor = static_cast<T>(count < 1 ? 1 : count);
  }

  SigmoidLabels<T> of;
  const T* labels;
  T* divisor;
};

template <typename T>
class CountLabels {
 public:
  struct Divisor {
    __device__ T operator()() const { return count == nullptr ? T{1} : *count; }
    const T* count = nullptr;
  };

  explicit CountLabels(PrepareContext& context)
      : fold_(context,
              context.Attr<bool>("normalize") ? context.Input("X").shape.element_count() : 0),
        divisor_(context.RequestWorkspace(sizeof(T))) {}

  Divisor operator()(const KernelContext& run, const SigmoidLabels<T>& of, const T* labels,
                     int64_t count) const {
    auto* divisor = static_cast<T*>(run.workspace(divisor_));
    fold_.Run(run, "number of labels", CudaFoldView(count, 1), LabelCount<T>{of, labels, divisor});
    return {divisor};
  }

 private:
  CudaFold<LabelCount<T>> fold_;
  int divisor_;
};

}  // namespace

void RegisterSigmoidCrossEntropyWithLogitsCuda(OpRegistry& registry) {
  constexpr const char* kType = "sigmoid_cross_entropy_with_logits";
  constexpr const char* kGradType = "sigmoid_cross_entropy_with_logits_grad";
  AddCudaKernels<float, double>(registry, kType, [=]<typename T>(PrepareContext& context) {
    return PrepareSigmoidLoss<T, CountLabels<T>>(context, ForEachElementOnDevice{kType});
  });
  AddCudaKernels<float, double>(registry, kGradType, [=]<typename T>(PrepareContext& context) {
    return PrepareSigmoidLossGrad<T, CountLabels<T>>(context, ForEachElementOnDevice{kGradType});
  });
}

}  // namespace skiff
