// CUDA kernels of einsum and einsum_grad; einsum.cc has the formulas.
#include <cstdint>
#include <memory>

#include "operators/common/cuda/cuda_bytes.h"
#include "operators/common/cuda/cuda_fold.cuh"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_gemm.h"
#include "operators/common/cuda/cuda_loops.h"
#include "operators/math/kernels/einsum_contractions.h"

namespace skiff {
namespace {

template <typename T>
struct EinsumElements {
  __device__ void operator()(int64_t i) const {
    int64_t at[3];
    loops.SetOffsets(i, at);
    if (b == nullptr) {
      out[at[2]] = a[at[0]];
    } else {
      out[at[2]] = Rounded<T>(Widened(a[at[0]]) * Widened(b[at[1]]));
    }
  }

  CudaLoops<3> loops;
  const T* a;
  const T* b;
  T* out;
};

template <typename T>
struct EinsumSums {
  using Carry = double;
  static __device__ Carry Identity() { return 0; }
  static __device__ Carry Join(Carry a, Carry b) { return a + b; }
  __device__ void Add(int64_t place, int64_t, int64_t, Carry* carry) const { *carry += x[place]; }
  __device__ void Finish(int64_t output, Carry sum) const { out[output] = static_cast<T>(sum); }

  const T* x;
  T* out;
};

struct EinsumOnCuda {
  template <typename T>
  static PreparedStep<T> Prepare(const ElementStep& step, PrepareContext&) {
    CudaLoops<3> loops;
    static_assert(ElementStep::kMaxLoops == CudaLoops<3>::kMaxRank);
    for (const ElementStep::Loop& loop : step.loops) {
      loops.Append(loop.extent, {loop.stride_a, loop.stride_b, loop.stride_out});
    }
    return [=, a = step.a, b = step.b, out = step.out](const KernelContext& run,
                                                       const ContractionTensors<T>& tensors) {
      ForEachOnDevice(run, "einsum", loops.count(),
                      EinsumElements<T>{loops, tensors[a], tensors[b], tensors.Out(out)});
    };
  }

  template <typename T>
  static PreparedStep<T> Prepare(const SumStep& step, PrepareContext& context) {
    // Of half, no kernel accepts sums.
    if constexpr (sizeof(T) == sizeof(BFloat16)) {
      return {};
    } else {
      const CudaFold<EinsumSums<T>> fold(context, step.shape.element_count());
      return [=, a = step.a, out = step.out, view = CudaFoldView(step.shape, step.is_summed)](
                 const KernelContext& run, const ContractionTensors<T>& tensors) {
        fold.Run(run, "einsum", view, EinsumSums<T>{tensors[a], tensors.Out(out)});
      };
    }
  }

  template <typename T>
  static PreparedStep<T> Prepare(const MatrixStep& step, PrepareContext& context) {
    return [step, gemm = std::make_shared<CudaGemm<T>>(step.spec, context)](
               const KernelContext& run, const ContractionTensors<T>& tensors) {
      gemm->Run(run, step.spec, tensors[step.a], tensors[step.b], tensors.Out(step.out));
    };
  }

  static void Zero(const KernelContext& run, void* to, int64_t bytes) {
    FillBytesOnDevice(run, to, 0, bytes);
  }
  static void Copy(const KernelContext& run, const void* from, void* to, int64_t bytes) {
    CopyOnDevice(run, from, to, bytes);
  }
};

}  // namespace

void RegisterEinsumCuda(OpRegistry& registry) {
  AddEinsumKernels<float, EinsumOnCuda>(registry, PlaceKind::kCuda, "cuda");
  AddEinsumKernels<double, EinsumOnCuda>(registry, PlaceKind::kCuda, "cuda");
  AddEinsumKernels<BFloat16, EinsumOnCuda>(registry, PlaceKind::kCuda, kNativeHalfKernel);
  AddEinsumKernels<Float16, EinsumOnCuda>(registry, PlaceKind::kCuda, kNativeHalfKernel);
}

}  // namespace skiff
