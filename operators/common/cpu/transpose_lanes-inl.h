// Transposes squares of float32 in registers: as many vectors as a vector has lanes.
//
// Included once per instruction set, through Highway's foreach_target.
#include <cstdint>

#include "hwy/highway.h"
#include "operators/common/cpu/float_lanes-inl.h"

#if defined(SKIFF_OPERATORS_COMMON_CPU_TRANSPOSE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SKIFF_OPERATORS_COMMON_CPU_TRANSPOSE_LANES_INL_H_
#undef SKIFF_OPERATORS_COMMON_CPU_TRANSPOSE_LANES_INL_H_
#else
#define SKIFF_OPERATORS_COMMON_CPU_TRANSPOSE_LANES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Transposes kLanes vectors in place.
HWY_INLINE void TransposeLanes([[maybe_unused]] FloatVector* rows) {
#if HWY_TARGET != HWY_SCALAR
  const FloatTag d;
  const hn::Repartition<uint64_t, FloatTag> d64;
  // Within blocks of 4 lanes.
  for (int64_t i = 0; i < kLanes; i += 4) {
    const auto low01 = hn::BitCast(d64, hn::InterleaveLower(d, rows[i], rows[i + 1]));
    const auto low23 = hn::BitCast(d64, hn::InterleaveLower(d, rows[i + 2], rows[i + 3]));
    const auto high01 = hn::BitCast(d64, hn::InterleaveUpper(d, rows[i], rows[i + 1]));
    const auto high23 = hn::BitCast(d64, hn::InterleaveUpper(d, rows[i + 2], rows[i + 3]));
    rows[i] = hn::BitCast(d, hn::InterleaveLower(d64, low01, low23));
    rows[i + 1] = hn::BitCast(d, hn::InterleaveUpper(d64, low01, low23));
    rows[i + 2] = hn::BitCast(d, hn::InterleaveLower(d64, high01, high23));
    rows[i + 3] = hn::BitCast(d, hn::InterleaveUpper(d64, high01, high23));
  }
#endif
#if HWY_MAX_BYTES >= 32
  // Between neighbouring blocks.
  const auto swap_blocks = [&](int64_t i, int64_t k) HWY_ATTR {
    const auto even = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(rows[k]), rows[i]);
    const auto odd = hn::OddEvenBlocks(rows[k], hn::SwapAdjacentBlocks(rows[i]));
    rows[i] = even;
    rows[k] = odd;
  };
  for (int64_t i = 0; i < kLanes; i += 8) {
    for (int64_t k = 0; k < 4; ++k) swap_blocks(i + k, i + k + 4);
  }
  if constexpr (kLanes == 16) {
    // Between halves.
    for (int64_t i = 0; i < 8; ++i) {
      const auto low = hn::ConcatLowerLower(d, rows[i + 8], rows[i]);
      const auto high = hn::ConcatUpperUpper(d, rows[i + 8], rows[i]);
      rows[i] = low;
      rows[i + 8] = high;
    }
  }
#endif
}

}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SKIFF_OPERATORS_COMMON_CPU_TRANSPOSE_LANES_INL_H_
