#include "operators/collective/kernels/reducer.h"

#include <algorithm>
#include <cstddef>

#include "framework/base/parallel.h"
#include "operators/common/cpu/array_reduction.h"
#include "operators/common/cpu/wide_rows.h"

namespace skiff {
namespace {

// Elements whose sums stay in the first cache, and elements that are worth a thread.
constexpr int64_t kBlock = 2048;
constexpr int64_t kGrain = 4 * kBlock;

// best[i] becomes x[i] if that is larger, or NaN; NaN stays.
template <typename T>
void TakeLarger(const T* x, T* best, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const bool is_nan = x[i] != x[i];
    if (x[i] > best[i] || is_nan) best[i] = x[i];
  }
}

// In and Result are dtypes of the arrays, one of them half or both the same.
template <typename In, typename Result>
class BlockReduction {
  using Wide = WideType<In>;

 public:
  explicit BlockReduction(const ReducedArrays& arrays) : arrays_(arrays) {}

  // Reduces elements [begin, begin + count), at most a block of them. The result is written last:
  // it may lie where this rank's array is.
  void Run(int64_t begin, int64_t count) const {
    alignas(64) Wide reduced[kBlock];
    alignas(64) Wide widened[kBlock];
    const Wide* first = ReadRow(ArrayOf(0), begin, count, widened);
    std::copy_n(first, count, reduced);
    for (int32_t rank = 1; rank < arrays_.ranks; ++rank) {
      const Wide* next = ReadRow(ArrayOf(rank), begin, count, widened);
      if (arrays_.reduction == RankReduction::kSum) {
        AddArrays(reduced, next, reduced, count);
      } else {
        TakeLarger(next, reduced, count);
      }
    }
    Write(reduced, begin, count);
  }

 private:
  const In* ArrayOf(int32_t rank) const {
    if (rank == arrays_.rank) return static_cast<const In*>(arrays_.own);
    const int64_t before = rank < arrays_.rank ? rank : rank - 1;
    return static_cast<const In*>(arrays_.received) + before * arrays_.count;
  }

  void Write(Wide* reduced, int64_t begin, int64_t count) const {
    if constexpr (std::is_floating_point_v<Wide>) {
      const auto factor = static_cast<Wide>(arrays_.factor);
      if (arrays_.factor != 1) ScaleArray(reduced, factor, reduced, count);
    }
    auto* result = static_cast<Result*>(arrays_.result);
    if constexpr (kIsHalf<Result>) {
      WriteRow(reduced, count, result, begin);
    } else {
      std::copy_n(reduced, count, result + begin);
    }
  }

  const ReducedArrays& arrays_;
};

template <typename In, typename Result>
void ReduceBlocks(const ReducedArrays& arrays) {
  const BlockReduction<In, Result> blocks(arrays);
  ParallelFor(arrays.count, kGrain, [&](int64_t begin, int64_t end) {
    for (; begin < end; begin += kBlock) blocks.Run(begin, std::min(kBlock, end - begin));
  });
}

class ReducerOfHost final : public Reducer {
 public:
  void Reduce(const KernelContext&, const ReducedArrays& arrays) const override {
    VisitReduced(arrays, [&]<typename In, typename Result>(In, Result) {
      ReduceBlocks<In, Result>(arrays);
    });
  }
};

}  // namespace

const Reducer& HostReducer() {
  static const ReducerOfHost& reducer = *new ReducerOfHost;
  return reducer;
}

}  // namespace skiff
