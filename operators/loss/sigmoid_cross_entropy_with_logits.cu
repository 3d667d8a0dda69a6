// CUDA kernels of sigmoid_cross_entropy_with_logits and its gradient;
// sigmoid_cross_entropy_with_logits.cc has the formulas.
#include <array>
#include <cstdint>
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_element_formula.cuh"
#include "operators/common/cuda/cuda_fold.cuh"

namespace skiff {
namespace {

#include "operators/loss/kernels/sigmoid_cross_entropy_with_logits_formula-inl.h"

// Sets the divisor of the losses to the number of labels that count, and to 1 if there are none.
template <typename T>
struct CountSigmoidLabels {
  using Carry = int64_t;
  static __device__ Carry Identity() { return 0; }
  static __device__ Carry Join(Carry a, Carry b) { return a + b; }
  __device__ void Add(int64_t place, int64_t, int64_t, Carry* carry) const {
    if (IsCountedLabel(labels[place], ignored)) ++*carry;
  }
  __device__ void Finish(int64_t, Carry count) const {
    *divisor = static_cast<T>(count < 1 ? 1 : count);
  }

  const T* labels;
  T ignored;
  T* divisor;
};

// Returns the kernel of the op or of its gradient. `what` names it in an Error.
template <class Formula, typename T>
std::unique_ptr<Kernel> PrepareSigmoidLoss(PrepareContext& context, const char* what) {
  const Formula formula(context);
  const FormulaArguments<Formula, T> arguments(context);
  const In<T> labels(context, "Label");
  const bool normalize = context.Attr<bool>("normalize");
  const auto ignored = static_cast<T>(context.IntAttr("ignore_index"));
  const CudaFold<CountSigmoidLabels<T>> fold(
      context, normalize ? context.Input("X").shape.element_count() : 0);
  const int divisor = context.RequestWorkspace(sizeof(T));
  return MakeRowsKernel([=](const KernelContext& run) {
    ElementArrays<T> arrays = arguments(run);
    const int64_t count = arguments.count(run);
    if (normalize) {
      auto* number = static_cast<T*>(run.workspace(divisor));
      fold.Run(run, "number of labels", CudaFoldView(count, 1), {labels(run), ignored, number});
      arrays.inputs[kSigmoidDivisor] = {number, 0};
    }
    LaunchFormula<Formula, T>(run, what, formula, arrays, count);
  });
}

}  // namespace

void RegisterSigmoidCrossEntropyWithLogitsCuda(OpRegistry& registry) {
  constexpr const char* kType = "sigmoid_cross_entropy_with_logits";
  constexpr const char* kGradType = "sigmoid_cross_entropy_with_logits_grad";
  AddCudaKernels<float, double>(registry, kType, [=]<typename T>(PrepareContext& context) {
    return PrepareSigmoidLoss<SigmoidLossFormula, T>(context, kType);
  });
  AddCudaKernels<float, double>(registry, kGradType, [=]<typename T>(PrepareContext& context) {
    return PrepareSigmoidLoss<SigmoidLossGradFormula, T>(context, kGradType);
  });
}

}  // namespace skiff
