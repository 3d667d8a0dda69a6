// CUDA kernels of isfinite.
#include <memory>
#include <type_traits>

#include "framework/op/registry.h"
#include "operators/common/cuda_fold.cuh"
#include "operators/common/cuda_for_each.cuh"

namespace skiff {
namespace {

template <typename T>
struct AreFinite {
  using Carry = bool;
  static __device__ Carry Identity() { return true; }
  static __device__ Carry Join(Carry a, Carry b) { return a && b; }
  __device__ void Add(int64_t i, int64_t, int64_t, Carry* carry) const {
    // 0 for a finite number, and NaN for an infinity or NaN.
    const bool is_finite = x[i] - x[i] == T{0};
    *carry = *carry && is_finite;
  }
  __device__ void Finish(int64_t, Carry result) const { *out = result; }

  const T* x;
  bool* out;
};

// All integers are finite: none is looked at.
template <typename T>
int64_t CountOf(int64_t elements) {
  return std::is_integral_v<T> ? 0 : elements;
}

template <typename T>
std::unique_ptr<Kernel> PrepareIsfinite(PrepareContext& context) {
  const CudaFold<AreFinite<T>> fold(context, CountOf<T>(context.Input("X").shape.element_count()));
  const int x = context.InputIndex("X");
  const int out = context.OutputIndex("Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const Tensor& values = run.input(x);
    fold.Run(run, "isfinite", CudaFoldView(CountOf<T>(values.element_count()), 1),
             {values.data<T>(), run.output(out).data<bool>()});
  });
}

}  // namespace

void RegisterIsfiniteCuda(OpRegistry& registry) {
  AddCudaKernels<float, double, int32_t, int64_t>(
      registry, "isfinite",
      [=]<typename T>(PrepareContext& context) { return PrepareIsfinite<T>(context); });
}

}  // namespace skiff
