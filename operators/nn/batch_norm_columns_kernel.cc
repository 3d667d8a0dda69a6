// The passes of batch normalization over float32 rows of channels: images with channels last, and
// batches of vectors. A vector holds neighbouring channels of one row.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

#include "framework/base/parallel.h"
#include "operators/nn/batch_norm_shared.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/nn/batch_norm_columns_kernel.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skiff {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;
using OneFloatTag = hn::CappedTag<float, 1>;

// Rows whose sums stay in float32, so that rounding doesn't pile up.
constexpr int64_t kRowsOfSum = 256;

// Two sums by column.
struct ColumnSums {
  double* first;
  double* second;
};

// Calls accumulate(tag, row, column, first, second) to add to two vectors of sums, for kVectors
// neighbouring vectors of columns of each row; adds the sums to `sums`.
template <int64_t kVectors, class D, typename Accumulate>
HWY_INLINE void SumVectors(D d, int64_t rows, int64_t column, const ColumnSums& sums,
                           const Accumulate& accumulate) {
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));
  for (int64_t begin = 0; begin < rows; begin += kRowsOfSum) {
    const int64_t end = std::min(rows, begin + kRowsOfSum);
    hn::Vec<D> first[kVectors];
    hn::Vec<D> second[kVectors];
    for (int64_t k = 0; k < kVectors; ++k) first[k] = second[k] = hn::Zero(d);
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t k = 0; k < kVectors; ++k)
        accumulate(d, row, column + k * kLanes, first[k], second[k]);
    }
    for (int64_t k = 0; k < kVectors; ++k) {
      HWY_ALIGN float lanes[2 * kLanes];
      hn::Store(first[k], d, lanes);
      hn::Store(second[k], d, lanes + kLanes);
      for (int64_t i = 0; i < kLanes; ++i) {
        sums.first[column + k * kLanes + i] += static_cast<double>(lanes[i]);
        sums.second[column + k * kLanes + i] += static_cast<double>(lanes[kLanes + i]);
      }
    }
  }
}

template <typename Accumulate>
HWY_INLINE void SumColumns(int64_t rows, int64_t columns, const ColumnSums& sums,
                           const Accumulate& accumulate) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + 4 * lanes <= columns; c += 4 * lanes) SumVectors<4>(d, rows, c, sums, accumulate);
  for (; c + lanes <= columns; c += lanes) SumVectors<1>(d, rows, c, sums, accumulate);
  for (; c < columns; ++c) SumVectors<1>(OneFloatTag(), rows, c, sums, accumulate);
}

// Adds, for `columns` columns of rows `stride` elements apart, the sums of x - pivot and of its
// square.
void ColumnMoments(const float* x, int64_t rows, int64_t stride, int64_t columns,
                   const float* pivot, double* sums, double* squares) {
  SumColumns(rows, columns, {sums, squares},
             [&](auto d, int64_t row, int64_t c, auto& sum, auto& square) HWY_ATTR {
               const auto distance =
                   hn::Sub(hn::LoadU(d, x + row * stride + c), hn::LoadU(d, pivot + c));
               sum = hn::Add(sum, distance);
               square = hn::MulAdd(distance, distance, square);
             });
}

// Adds the sums of dy and of dy · (x - mean).
void ColumnGradientSums(const float* x, const float* dy, int64_t rows, int64_t stride,
                        int64_t columns, const float* mean, double* sums, double* products) {
  SumColumns(rows, columns, {sums, products},
             [&](auto d, int64_t row, int64_t c, auto& sum, auto& product) HWY_ATTR {
               const int64_t at = row * stride + c;
               const auto gradient = hn::LoadU(d, dy + at);
               const auto distance = hn::Sub(hn::LoadU(d, x + at), hn::LoadU(d, mean + c));
               sum = hn::Add(sum, gradient);
               product = hn::MulAdd(gradient, distance, product);
             });
}

// Calls visit(tag, offset, column) for the vectors of every row.
template <typename Visit>
HWY_INLINE void ForEachVector(int64_t rows, int64_t columns, const Visit& visit) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t row = 0; row < rows; ++row) {
    int64_t c = 0;
    for (; c + lanes <= columns; c += lanes) visit(d, row * columns + c, c);
    for (; c < columns; ++c) visit(OneFloatTag(), row * columns + c, c);
  }
}

void NormalizeRows(const float* x, int64_t rows, int64_t columns, const float* mean,
                   const float* slope, const float* shift, float* y) {
  ForEachVector(rows, columns, [&](auto d, int64_t at, int64_t c) HWY_ATTR {
    const auto distance = hn::Sub(hn::LoadU(d, x + at), hn::LoadU(d, mean + c));
    hn::StoreU(hn::MulAdd(distance, hn::LoadU(d, slope + c), hn::LoadU(d, shift + c)), d, y + at);
  });
}

void GradientRows(const float* x, const float* dy, int64_t rows, int64_t columns, const float* mean,
                  const float* slope, const float* offset, const float* factor, float* dx) {
  ForEachVector(rows, columns, [&](auto d, int64_t at, int64_t c) HWY_ATTR {
    const auto distance = hn::Sub(hn::LoadU(d, x + at), hn::LoadU(d, mean + c));
    const auto centered = hn::Sub(hn::LoadU(d, dy + at), hn::LoadU(d, offset + c));
    const auto gradient = hn::NegMulAdd(distance, hn::LoadU(d, factor + c), centered);
    hn::StoreU(hn::Mul(hn::LoadU(d, slope + c), gradient), d, dx + at);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace skiff
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(ColumnMoments);
HWY_EXPORT(ColumnGradientSums);
HWY_EXPORT(NormalizeRows);
HWY_EXPORT(GradientRows);

namespace {

// Columns of a tile, whose part of a row fills a few cache lines.
constexpr int64_t kTile = 64;
// Rows that a part has at least.
constexpr int64_t kLeastRows = 64;

NormParts PartsOf(const NormGeometry& geometry) {
  const int64_t tiles = (geometry.channels + kTile - 1) / kTile;
  const int64_t wanted = (NormParts::kEnoughItems + tiles - 1) / tiles;
  return {.units = geometry.count(),
          .values_a_unit = 1,
          .parts = std::clamp<int64_t>(geometry.count() / kLeastRows, 1, wanted),
          .blocks = tiles,
          .block = kTile,
          .channels = geometry.channels};
}

class ColumnNormLoops final : public PartedNormLoops {
 public:
  explicit ColumnNormLoops(const NormGeometry& geometry)
      : PartedNormLoops(PartsOf(geometry)), rows_(geometry.count()), columns_(geometry.channels) {}

  void Normalize(const float* x, const float* mean, const float* slope, const float* shift,
                 float* y) const override {
    ParallelFor(rows_, GrainOf(columns_), [&](int64_t begin, int64_t end) {
      HWY_DYNAMIC_DISPATCH(NormalizeRows)
      (x + begin * columns_, end - begin, columns_, mean, slope, shift, y + begin * columns_);
    });
  }

  void Gradient(const float* x, const float* dy, const float* mean, const float* slope,
                const float* offset, const float* factor, float* dx) const override {
    ParallelFor(rows_, GrainOf(columns_), [&](int64_t begin, int64_t end) {
      const int64_t at = begin * columns_;
      HWY_DYNAMIC_DISPATCH(GradientRows)
      (x + at, dy + at, end - begin, columns_, mean, slope, offset, factor, dx + at);
    });
  }

 private:
  int64_t Width(int64_t tile) const { return std::min(kTile, columns_ - tile * kTile); }

  void PartMoments(const float* x, const NormItem& item, double* means,
                   double* squares) const override {
    const float* first = x + item.begin * columns_ + item.block * kTile;
    const int64_t width = Width(item.block);
    std::array<float, kTile> pivot;
    FindPivot(first, std::min(item.end - item.begin, kLeastRows), columns_, width, pivot.data());
    std::fill_n(means, width, 0.0);
    std::fill_n(squares, width, 0.0);
    HWY_DYNAMIC_DISPATCH(ColumnMoments)
    (first, item.end - item.begin, columns_, width, pivot.data(), means, squares);
    CenterMoments(pivot.data(), width, item.end - item.begin, means, squares);
  }

  void PartGradientSums(const float* x, const float* dy, const float* mean, const NormItem& item,
                        double* sums, double* products) const override {
    const int64_t column = item.block * kTile;
    const int64_t first = item.begin * columns_ + column;
    HWY_DYNAMIC_DISPATCH(ColumnGradientSums)
    (x + first, dy + first, item.end - item.begin, columns_, Width(item.block), mean + column, sums,
     products);
  }

  int64_t rows_;
  int64_t columns_;
};

}  // namespace

std::unique_ptr<NormLoops<float>> MakeColumnNormLoops(const NormGeometry& geometry) {
  return std::make_unique<ColumnNormLoops>(geometry);
}

}  // namespace skiff
#endif
