// CUDA kernels of the ops that reduce numbers over ranks: c_allreduce_sum, c_allreduce_list,
// c_allreduce_max, c_reduce_scatter_list and c_reducescatter. Messages and additions are work of
// one stream, so the host waits for nothing.
#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <type_traits>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/collective/kernels/all_reduce.h"
#include "operators/collective/kernels/reduce_scatter.h"
#include "operators/collective/kernels/reducer.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/sum_type.h"

namespace skiff {
namespace {

// In and Result are dtypes of the arrays, one of them half or both the same.
template <typename In, typename Result>
struct ReduceElement {
  using Wide = WideType<In>;

  __device__ void operator()(int64_t i) const {
    Wide reduced = NumberOf(0, i);
    for (int32_t rank = 1; rank < ranks; ++rank) {
      const Wide next = NumberOf(rank, i);
      if (takes_largest) {
        const bool is_nan = next != next;
        if (next > reduced || is_nan) reduced = next;
      } else {
        reduced = Sum(reduced, next);
      }
    }
    result[i] = Rounded<Result>(reduced * factor);
  }

  __device__ Wide NumberOf(int32_t rank, int64_t i) const {
    if (rank == own_rank) return Widened(own[i]);
    const int64_t before = rank < own_rank ? rank : rank - 1;
    return Widened(received[before * count + i]);
  }

  // Integers wrap around.
  __device__ static Wide Sum(Wide a, Wide b) {
    if constexpr (std::is_floating_point_v<Wide>) {
      return a + b;
    } else {
      return static_cast<Wide>(static_cast<SumOf<Wide>>(a) + static_cast<SumOf<Wide>>(b));
    }
  }

  const In* own;
  const In* received;
  Result* result;  // may be `own`
  int64_t count;
  int32_t own_rank;
  int32_t ranks;
  bool takes_largest;
  Wide factor;
};

template <typename In, typename Result>
void ReduceOnDevice(const KernelContext& run, const ReducedArrays& arrays) {
  ForEachOnDevice(
      run, "a reduction over ranks", arrays.count,
      ReduceElement<In, Result>{.own = static_cast<const In*>(arrays.own),
                                .received = static_cast<const In*>(arrays.received),
                                .result = static_cast<Result*>(arrays.result),
                                .count = arrays.count,
                                .own_rank = arrays.rank,
                                .ranks = arrays.ranks,
                                .takes_largest = arrays.reduction == RankReduction::kLargest,
                                .factor = static_cast<WideType<In>>(arrays.factor)});
}

class CudaReducer final : public Reducer {
 public:
  void Reduce(const KernelContext& run, const ReducedArrays& arrays) const override {
    VisitReduced(arrays, [&]<typename In, typename Result>(In, Result) {
      ReduceOnDevice<In, Result>(run, arrays);
    });
  }
};

template <typename Prepare>
void AddReducingKernels(OpRegistry& registry, const char* type, const Prepare& prepare) {
  AddCudaKernels<float, double, int32_t, int64_t, Float16, BFloat16>(
      registry, type, [=]<typename T>(PrepareContext& context) { return prepare(context); });
}

}  // namespace

void RegisterReductionsCuda(OpRegistry& registry) {
  static const CudaReducer& reducer = *new CudaReducer;
  const auto add = [&](const char* type, RankReduction reduction) {
    AddReducingKernels(registry, type, [=](PrepareContext& context) {
      return PrepareAllReduce(context, reducer, reduction);
    });
  };
  add("c_allreduce_sum", RankReduction::kSum);
  add("c_allreduce_list", RankReduction::kSum);
  add("c_allreduce_max", RankReduction::kLargest);
  add("c_reduce_scatter_list", RankReduction::kSum);
  AddReducingKernels(registry, "c_reducescatter", [=](PrepareContext& context) {
    return PrepareReduceScatter(context, reducer);
  });
}

}  // namespace skiff
