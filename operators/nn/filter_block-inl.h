// Blocks of plain filters, [outputs, inputs, taps], as many outputs and inputs as a vector has
// lanes.
//
// Included once per instruction set, through Highway's foreach_target.
#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "operators/nn/filter_taps_shared.h"

#if defined(SKIFF_OPERATORS_NN_FILTER_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SKIFF_OPERATORS_NN_FILTER_BLOCK_INL_H_
#undef SKIFF_OPERATORS_NN_FILTER_BLOCK_INL_H_
#else
#define SKIFF_OPERATORS_NN_FILTER_BLOCK_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;
using FloatVector = hn::Vec<FloatTag>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(FloatTag()));

// Transposes kLanes vectors.
HWY_INLINE void Transpose([[maybe_unused]] FloatVector* rows) {
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

// A block of kLanes outputs x kLanes inputs of the filters, as [tap][input][output lane].
// Filters outside are 0. `padded` is scratch of that size.
inline void LoadFilterBlock(const FilterTaps& shape, const float* filters, int64_t output_block,
                            int64_t input_block, float* padded, float* taps) {
  const FloatTag d;
  const int64_t outputs = std::min(kLanes, shape.outputs - output_block * kLanes);
  const int64_t inputs = std::min(kLanes, shape.inputs - input_block * kLanes);
  const float* from =
      filters + (output_block * kLanes * shape.inputs + input_block * kLanes) * shape.taps;
  int64_t stride = shape.inputs * shape.taps;
  if (outputs < kLanes || inputs < kLanes) {
    std::fill_n(padded, kLanes * kLanes * shape.taps, 0.0f);
    for (int64_t o = 0; o < outputs; ++o)
      std::copy_n(from + o * stride, inputs * shape.taps, padded + o * kLanes * shape.taps);
    from = padded;
    stride = kLanes * shape.taps;
  }
  FloatVector rows[kLanes];
  for (int64_t first = 0; first < kLanes * shape.taps; first += kLanes) {
    for (int64_t o = 0; o < kLanes; ++o) rows[o] = hn::LoadU(d, from + o * stride + first);
    Transpose(rows);
    for (int64_t i = 0; i < kLanes; ++i) {
      const int64_t input = (first + i) / shape.taps;
      const int64_t tap = (first + i) % shape.taps;
      hn::Store(rows[i], d, taps + (tap * kLanes + input) * kLanes);
    }
  }
}

// to[i * to_stride + j] = from[j * kLanes + i]: a tap's [input][output lane] as [output][input
// lane].
inline void TransposeTap(const float* from, int64_t to_stride, float* to) {
  const FloatTag d;
  FloatVector rows[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) rows[i] = hn::Load(d, from + i * kLanes);
  Transpose(rows);
  for (int64_t i = 0; i < kLanes; ++i) hn::Store(rows[i], d, to + i * to_stride);
}

// The reverse of LoadFilterBlock; filters outside are left out.
inline void StoreFilterBlock(const FilterTaps& shape, const float* taps, int64_t output_block,
                             int64_t input_block, float* padded, float* filters) {
  const FloatTag d;
  const int64_t outputs = std::min(kLanes, shape.outputs - output_block * kLanes);
  const int64_t inputs = std::min(kLanes, shape.inputs - input_block * kLanes);
  const bool whole = outputs == kLanes && inputs == kLanes;
  float* target =
      filters + (output_block * kLanes * shape.inputs + input_block * kLanes) * shape.taps;
  const int64_t target_stride = shape.inputs * shape.taps;
  float* to = whole ? target : padded;
  const int64_t stride = whole ? target_stride : kLanes * shape.taps;
  FloatVector rows[kLanes];
  for (int64_t first = 0; first < kLanes * shape.taps; first += kLanes) {
    for (int64_t i = 0; i < kLanes; ++i) {
      const int64_t input = (first + i) / shape.taps;
      const int64_t tap = (first + i) % shape.taps;
      rows[i] = hn::Load(d, taps + (tap * kLanes + input) * kLanes);
    }
    Transpose(rows);
    for (int64_t o = 0; o < kLanes; ++o) hn::StoreU(rows[o], d, to + o * stride + first);
  }
  if (whole) return;
  for (int64_t o = 0; o < outputs; ++o)
    std::copy_n(padded + o * kLanes * shape.taps, inputs * shape.taps, target + o * target_stride);
}

}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SKIFF_OPERATORS_NN_FILTER_BLOCK_INL_H_
