// CUDA kernels of isfinite.
#include <type_traits>

#include "framework/op/registry.h"
#include "operators/common/cuda_reduction.cuh"

namespace skiff {
namespace {

// 1 where all elements so far are finite, else 0.
struct All {
  using Value = int;
  using Partial = int;

  __device__ static int Empty() { return 1; }
  __device__ static int Combine(int a, int b) { return a & b; }
};

template <typename T>
struct IsFinite {
  const T* x;

  __device__ int operator()(int64_t i) const {
    // 0 for a finite number, and NaN for an infinity or NaN.
    return x[i] - x[i] == T{0} ? 1 : 0;
  }
};

// All integers are finite: none is looked at.
template <typename T>
CudaReduction ReductionOf(int64_t count) {
  const ReductionDim dim{.size = std::is_integral_v<T> ? 0 : count, .is_reduced = true};
  return CudaReduction(std::span(&dim, 1));
}

template <typename T>
void AddIsfiniteKernel(OpRegistry& registry) {
  const auto prepare = [](PrepareContext& context) -> std::unique_ptr<Kernel> {
    const int x = context.InputIndex("X");
    const int out = context.OutputIndex("Out");
    const int64_t bytes =
        ReductionOf<T>(context.Input("X").shape.element_count()).WorkspaceBytes(sizeof(int));
    const int workspace = context.RequestWorkspace(bytes);
    return MakeRowsKernel([=](const KernelContext& run) {
      const Tensor& values = run.input(x);
      const char* failure = LaunchReduction<All>(ReductionOf<T>(values.element_count()),
                                                 IsFinite<T>{values.data<T>()},
                                                 StoreResult<bool>{run.output(out).data<bool>()},
                                                 run.workspace(workspace), run.device().stream);
      SKIFF_ENFORCE(failure == nullptr, kIo, "isfinite: launch failed: ", failure);
    });
  };
  registry.AddKernel("isfinite", {.name = "cuda",
                                  .place = PlaceKind::kCuda,
                                  .dtype = kDTypeOf<T>,
                                  .prepare = prepare,
                                  .accepts = {}});
}

}  // namespace

void RegisterIsfiniteCuda(OpRegistry& registry) {
  AddIsfiniteKernel<float>(registry);
  AddIsfiniteKernel<double>(registry);
  AddIsfiniteKernel<int32_t>(registry);
  AddIsfiniteKernel<int64_t>(registry);
}

}  // namespace skiff
