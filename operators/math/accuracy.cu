// CUDA kernels of accuracy.
#include <cstdint>
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_fold.cuh"
#include "operators/common/cuda/cuda_for_each.cuh"

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
  const In<int64_t> indices(context, "Indices");
  const In<> label(context, "Label");
  const Out<float> accuracy(context, "Accuracy");
  const Out<int32_t> correct(context, "Correct");
  const Out<int32_t> total(context, "Total");
  return MakeRowsKernel([=](const KernelContext& run) {
    const int64_t rows = indices.shape(run)[0];
    fold.Run(run, "accuracy", CudaFoldView(rows, 1),
             {.indices = indices(run),
              .labels = label(run),
              .is_int64 = label.tensor(run).dtype() == DType::kInt64,
              .rows = rows,
              .k = k,
              .accuracy = accuracy(run),
              .correct = correct(run),
              .total = total(run)});
  });
}

}  // namespace

void RegisterAccuracyCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(registry, "accuracy", [=]<typename T>(PrepareContext& context) {
    return PrepareAccuracy(context);
  });
}

}  // namespace skiff
