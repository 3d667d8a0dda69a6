// CUDA kernels of isfinite.
#include <memory>
#include <type_traits>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_division.h"
#include "operators/common/cuda/cuda_fold.cuh"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/selected_rows.h"

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

// Of the slots in use.
template <typename T>
struct AreUsedFinite : AreFinite<T> {
  __device__ void Add(int64_t i, int64_t output, int64_t j, bool* carry) const {
    if (rows[Divide(i, width).quotient] >= 0) AreFinite<T>::Add(i, output, j, carry);
  }

  const int64_t* rows;
  int64_t width;
};

// All integers are finite: none is looked at.
template <typename T>
int64_t CountOf(int64_t elements) {
  return std::is_integral_v<T> ? 0 : elements;
}

template <typename T>
std::unique_ptr<Kernel> PrepareIsfinite(PrepareContext& context) {
  const CudaFold<AreFinite<T>> fold(context, CountOf<T>(context.Input("X").shape.element_count()));
  const In<T> x(context, "X");
  const Out<bool> out(context, "Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const Tensor& values = x.tensor(run);
    fold.Run(run, "isfinite", CudaFoldView(CountOf<T>(values.element_count()), 1),
             {values.data<T>(), out(run)});
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareIsfiniteRows(PrepareContext& context) {
  const CudaFold<AreUsedFinite<T>> fold(context, context.Input("X").shape.element_count());
  const In<T> x(context, "X");
  const Out<bool> out(context, "Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const Tensor& values = x.tensor(run);
    fold.Run(run, "isfinite", CudaFoldView(values.element_count(), 1),
             {{values.data<T>(), out(run)}, values.rows().data(), RowWidth(values.shape())});
  });
}

}  // namespace

void RegisterIsfiniteCuda(OpRegistry& registry) {
  AddCudaKernels<float, double, int32_t, int64_t>(
      registry, "isfinite",
      [=]<typename T>(PrepareContext& context) { return PrepareIsfinite<T>(context); });
  registry.AddSelectedRowsKernels<float, double>(
      "isfinite",
      [=]<typename T>(PrepareContext& context) { return PrepareIsfiniteRows<T>(context); },
      PlaceKind::kCuda);
}

}  // namespace skiff
