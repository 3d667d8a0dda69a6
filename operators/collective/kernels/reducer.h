// Arithmetic on the numbers that all ranks have sent: the sum in the order of ranks, or the
// largest.
#pragma once

#include <cstdint>
#include <type_traits>

#include "framework/base/dtype.h"
#include "framework/base/error.h"
#include "framework/op/kernel.h"
#include "operators/common/half.h"

namespace skiff {

enum class RankReduction {
  kSum,      // ((x0 + x1) + x2) + …, times a factor
  kLargest,  // or NaN, if a rank has it
};

// What is computed of an array that each rank has.
struct ReducedArrays {
  RankReduction reduction = RankReduction::kSum;
  double factor = 1;  // of sums; 1 for integers
  // Numbers of half are widened before the first addition; the result is rounded once.
  DType dtype = DType::kFloat32;
  DType result_dtype = DType::kFloat32;  // `dtype`, or float32 where that is half, or half
  int32_t rank = 0;
  int32_t ranks = 1;
  int64_t count = 0;               // elements
  const void* own = nullptr;       // this rank's array
  const void* received = nullptr;  // those of the other ranks, one after the other, in their order
  void* result = nullptr;          // may be `own` where the dtypes are the same
};

class Reducer {
 public:
  virtual ~Reducer() = default;
  // Writes `result`. On a device, appends the work to the stream.
  virtual void Reduce(const KernelContext& run, const ReducedArrays& arrays) const = 0;
};

// Calls visit(In(), Result()), with numbers of the two dtypes. Throws Error (kInvalidArgument) for
// other dtypes.
template <typename Visit>
void VisitReduced(const ReducedArrays& arrays, const Visit& visit) {
  constexpr const char* kWhat = "a reduction over ranks";
  const auto visit_result = [&]<typename In>(In in) {
    if (arrays.result_dtype == arrays.dtype) return visit(in, in);
    if constexpr (kIsHalf<In>) {
      VisitDType<float>(arrays.result_dtype, kWhat, [&](float result) { visit(in, result); });
    } else if constexpr (std::is_same_v<In, float>) {
      VisitDType<Float16, BFloat16>(arrays.result_dtype, kWhat,
                                    [&](auto result) { visit(in, result); });
    } else {
      Throw(ErrorCode::kInvalidArgument, kWhat, ": ", arrays.dtype, " becomes ",
            arrays.result_dtype, ", expected ", arrays.dtype);
    }
  };
  VisitDType<float, double, int32_t, int64_t, Float16, BFloat16>(arrays.dtype, kWhat, visit_result);
}

// Returns the reducer of the CPU. Its additions are those of gradient_merge.
const Reducer& HostReducer();

}  // namespace skiff
