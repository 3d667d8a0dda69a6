// CUDA kernels of accuracy.
#include <cstdint>
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda_fold.cuh"
#include "operators/common/cuda_for_each.cuh"

namespace skiff {
namespace {

// Counts rows whose label is among the k classes. Results may be nullptr.
struct CountCorrect {
  using Carry = int64_t;
  static __device__ Carry Identity() { return 0; }
  static __device__ Carry Join(Carry a, Carry b) { return a + b; }
  __device__ void Add(int64_t row, int64_t, int64_t, Carry* carry) const {
    const int64_t label = is_int64 ? static_cast<const int64_t*>(labels)[row]
                                   : int64_t{static_cast<const int32_t*>(labels)[row]};
    bool found = false;
    for (int64_t i = row * k; i < (row + 1) * k; ++i) found |= indices[i] == label;
    if (found) ++*carry;
  }
  __device__ void Finish(int64_t, Carry count) const {
    if (accuracy != nullptr) {
      *accuracy = rows == 0 ? 0.0f : static_cast<float>(count) / static_cast<float>(rows);
    }
    if (correct != nullptr) *correct = static_cast<int32_t>(count);
    if (total != nullptr) *total = static_cast<int32_t>(rows);
  }

  const int64_t* indices;
  const void* labels;
  bool is_int64;
  int64_t rows;
  int64_t k;
  float* accuracy;
  int32_t* correct;
  int32_t* total;
};

std::unique_ptr<Kernel> PrepareAccuracy(PrepareContext& context) {
  const CudaFold<CountCorrect> fold(context, context.Input("Indices").shape.element_count());
  const int64_t k = context.Input("Indices").shape[1];
  const int indices = context.InputIndex("Indices");
  const int label = context.InputIndex("Label");
  const int accuracy = context.OutputIndex("Accuracy");
  const int correct = context.OutputIndex("Correct");
  const int total = context.OutputIndex("Total");
  return MakeRowsKernel([=](const KernelContext& run) {
    const int64_t rows = run.input(indices).shape()[0];
    const Tensor& labels = run.input(label);
    fold.Run(run, "accuracy", CudaFoldView(rows, 1),
             {.indices = run.input(indices).data<int64_t>(),
              .labels = labels.raw_data(),
              .is_int64 = labels.dtype() == DType::kInt64,
              .rows = rows,
              .k = k,
              .accuracy = accuracy < 0 ? nullptr : run.output(accuracy).data<float>(),
              .correct = correct < 0 ? nullptr : run.output(correct).data<int32_t>(),
              .total = total < 0 ? nullptr : run.output(total).data<int32_t>()});
  });
}

}  // namespace

void RegisterAccuracyCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(registry, "accuracy", [=]<typename T>(PrepareContext& context) {
    return PrepareAccuracy(context);
  });
}

}  // namespace skiff
