// The matrix products of Winograd convolutions. A kernel keeps a block of sums in registers, rows
// times one or two vectors, as large as the register file allows. For each summed channel it loads
// the vectors of filters once and broadcasts one number per row: with two vectors, each broadcast
// feeds two multiply-adds.
#include <algorithm>
#include <array>
#include <utility>

#include "operators/nn/convolution/winograd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/nn/convolution/winograd_product.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "operators/common/cpu/float_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 32 registers: 28 sums, 2 vectors of filters, a broadcast. 16 registers: 12 sums.
constexpr int64_t kMaxRows = kLanes == 16 ? 14 : 6;
// Divides the lanes of a block, whose channels are the rows here.
constexpr int64_t kGradientRows = kLanes == 16 ? 8 : 4;
// The blocks of channels that are summed at a time. Sums of 128 terms, each from zero, have smaller
// rounding errors than one long sum.
constexpr int64_t kBlocksOfSum = 128 / kLanes;

// Multiplies kRows tiles from `row` on with the filters of `blocks` blocks of summed channels. The
// sizes are template arguments so that the sums stay in registers: the compiler must unroll the
// loops over an array before it can keep that in registers.
template <int kRows, int kVectors>
void TileKernel(const TileProduct& product, int64_t row, int64_t block, int64_t blocks,
                bool accumulate) {
  const FloatTag d;
  FloatVector sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) sums[r][j] = hn::Zero(d);
  }
  const float* tiles = product.tiles + block * product.tiles_block_stride + row * kLanes;
  const float* filters = product.filters + block * kLanes * kVectors * kLanes;
  for (int64_t b = 0; b < blocks; ++b, tiles += product.tiles_block_stride) {
    for (int64_t k = 0; k < kLanes; ++k, filters += kVectors * kLanes) {
      FloatVector filter[kVectors];
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) filter[j] = hn::Load(d, filters + j * kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const auto value = hn::Set(d, tiles[r * kLanes + k]);
#pragma GCC unroll 2
        for (int j = 0; j < kVectors; ++j) sums[r][j] = hn::MulAdd(value, filter[j], sums[r][j]);
      }
    }
  }
  float* products = product.products + row * kLanes;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
      float* to = products + j * product.products_block_stride + r * kLanes;
      hn::Store(accumulate ? hn::Add(hn::Load(d, to), sums[r][j]) : sums[r][j], d, to);
    }
  }
}

using TileKernelPointer = void (*)(const TileProduct&, int64_t, int64_t, int64_t, bool);

template <int kVectors, size_t... kIndex>
constexpr std::array<TileKernelPointer, sizeof...(kIndex)> TileKernels(
    std::index_sequence<kIndex...>) {
  return {TileKernel<static_cast<int>(kIndex) + 1, kVectors>...};
}

template <int kVectors>
void MultiplyPanel(const TileProduct& product, int64_t count) {
  static constexpr auto kKernels = TileKernels<kVectors>(std::make_index_sequence<kMaxRows>());
  // Groups of nearly the same size. A remainder of one or two rows would load the filters for
  // little work.
  const int64_t groups = (count + kMaxRows - 1) / kMaxRows;
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t row = count * g / groups;
    const auto kernel = kKernels[static_cast<size_t>(count * (g + 1) / groups - row - 1)];
    for (int64_t block = 0; block < product.blocks; block += kBlocksOfSum) {
      kernel(product, row, block, std::min(kBlocksOfSum, product.blocks - block),
             product.accumulate || block > 0);
    }
  }
}

void MultiplyTilesImpl(const TileProduct& product, int64_t count) {
  if (product.panel_blocks == 2) return MultiplyPanel<2>(product, count);
  MultiplyPanel<1>(product, count);
}

// Multiplies kGradientRows input channels of a block with a panel of output gradients, summed over
// tiles.
template <int kVectors>
void GradientKernel(const float* tiles, const float* gradients, int64_t gradients_block_stride,
                    int64_t count, bool accumulate, float* products) {
  const FloatTag d;
  FloatVector sums[kGradientRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kGradientRows; ++r) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) sums[r][j] = hn::Zero(d);
  }
  for (int64_t t = 0; t < count; ++t) {
    FloatVector gradient[kVectors];
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j)
      gradient[j] = hn::Load(d, gradients + j * gradients_block_stride + t * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kGradientRows; ++r) {
      const auto value = hn::Set(d, tiles[t * kLanes + r]);
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) sums[r][j] = hn::MulAdd(value, gradient[j], sums[r][j]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kGradientRows; ++r) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
      float* to = products + (r * kVectors + j) * kLanes;
      hn::Store(accumulate ? hn::Add(hn::Load(d, to), sums[r][j]) : sums[r][j], d, to);
    }
  }
}

template <int kVectors>
void MultiplyGradientPanel(const GradientProduct& product, int64_t count) {
  for (int64_t block = 0; block < product.blocks; ++block) {
    for (int64_t row = 0; row < kLanes; row += kGradientRows) {
      GradientKernel<kVectors>(product.tiles + block * product.tiles_block_stride + row,
                               product.gradients, product.gradients_block_stride, count,
                               product.accumulate,
                               product.products + (block * kLanes + row) * kVectors * kLanes);
    }
  }
}

void MultiplyGradientsImpl(const GradientProduct& product, int64_t count) {
  if (product.panel_blocks == 2) return MultiplyGradientPanel<2>(product, count);
  MultiplyGradientPanel<1>(product, count);
}

}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(MultiplyTilesImpl);
HWY_EXPORT(MultiplyGradientsImpl);

void MultiplyTiles(const TileProduct& product, int64_t count) {
  HWY_DYNAMIC_DISPATCH(MultiplyTilesImpl)(product, count);
}

void MultiplyGradients(const GradientProduct& product, int64_t count) {
  HWY_DYNAMIC_DISPATCH(MultiplyGradientsImpl)(product, count);
}

}  // namespace skiff
#endif
