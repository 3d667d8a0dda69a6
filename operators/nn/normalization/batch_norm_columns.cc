// The passes of batch normalization over float32 rows of channels: images with channels last, and
// batches of vectors. A vector holds neighbouring channels of one row, so a sum by channel needs no
// sum across lanes, and the coefficients load as vectors.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

#include "framework/base/parallel.h"
#include "operators/nn/normalization/batch_norm_passes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/nn/normalization/batch_norm_columns.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;
using OneFloatTag = hn::CappedTag<float, 1>;

// The number of rows that float32 sums cover before they are added to float64, which bounds the
// rounding error of large batches.
constexpr int64_t kRowsOfSum = 256;

// Two sums by column.
struct ColumnSums {
  double* first;
  double* second;
};

// Calls accumulate(tag, row, column, first, second), which adds to two vectors of sums, for
// kVectors neighbouring vectors of columns in each row. Adds the results to `sums`.
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
  // Four vectors at a time: their sums are independent, and each visit to a row uses more of its
  // cache lines. The tag of one lane takes what doesn't fill a vector, with the same rounding.
  for (; c + 4 * lanes <= columns; c += 4 * lanes) SumVectors<4>(d, rows, c, sums, accumulate);
  for (; c + lanes <= columns; c += lanes) SumVectors<1>(d, rows, c, sums, accumulate);
  for (; c < columns; ++c) SumVectors<1>(OneFloatTag(), rows, c, sums, accumulate);
}

// Adds the sums of x - pivot and of its square for `columns` columns of rows that are `stride`
// elements apart.
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

// Returns (x - mean) · slope + shift for the columns from c on, given the distance x - mean.
template <class D>
HWY_INLINE hn::Vec<D> Normalized(D d, hn::Vec<D> distance, const NormLines<float>& lines,
                                 int64_t c) {
  return hn::MulAdd(distance, hn::LoadU(d, lines.slope + c), hn::LoadU(d, lines.shift + c));
}

// Returns dy where the mask lets it through, else 0, for the vector at `at`.
template <NormMask kMask, class D>
HWY_INLINE hn::Vec<D> Masked(D d, const NormOutputGradient<float>& gradient, int64_t at,
                             hn::Vec<D> distance, const NormLines<float>& lines, int64_t c) {
  const auto dy = hn::LoadU(d, gradient.dy + at);
  if constexpr (kMask == NormMask::kNone) return dy;
  const auto output = kMask == NormMask::kInput ? Normalized(d, distance, lines, c)
                                                : hn::LoadU(d, gradient.output + at);
  return hn::IfThenElseZero(hn::Gt(output, hn::Zero(d)), dy);
}

// Adds the sums of g and of g · (x - mean) for each column. With kOutput it also writes g.
template <NormMask kMask>
void ColumnGradientSumsOf(const float* x, const NormOutputGradient<float>& gradient, int64_t rows,
                          int64_t stride, int64_t columns, const NormLines<float>& lines,
                          double* sums, double* products, float* masked) {
  SumColumns(rows, columns, {sums, products},
             [&](auto d, int64_t row, int64_t c, auto& sum, auto& product) HWY_ATTR {
               const int64_t at = row * stride + c;
               const auto distance = hn::Sub(hn::LoadU(d, x + at), hn::LoadU(d, lines.mean + c));
               const auto g = Masked<kMask>(d, gradient, at, distance, lines, c);
               if constexpr (kMask == NormMask::kOutput) hn::StoreU(g, d, masked + at);
               sum = hn::Add(sum, g);
               product = hn::MulAdd(g, distance, product);
             });
}

void ColumnGradientSums(const float* x, const NormOutputGradient<float>& gradient, int64_t rows,
                        int64_t stride, int64_t columns, const NormLines<float>& lines,
                        double* sums, double* products, float* masked) {
  const auto run = [&](auto of) HWY_ATTR {
    of(x, gradient, rows, stride, columns, lines, sums, products, masked);
  };
  switch (gradient.mask) {
    case NormMask::kNone:
      return run(ColumnGradientSumsOf<NormMask::kNone>);
    case NormMask::kInput:
      return run(ColumnGradientSumsOf<NormMask::kInput>);
    case NormMask::kOutput:
      return run(ColumnGradientSumsOf<NormMask::kOutput>);
  }
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

template <bool kAdds, bool kRectifies>
void NormalizeRowsOf(const float* x, const float* z, int64_t rows, int64_t columns,
                     const NormLines<float>& lines, float* y) {
  ForEachVector(rows, columns, [&](auto d, int64_t at, int64_t c) HWY_ATTR {
    const auto distance = hn::Sub(hn::LoadU(d, x + at), hn::LoadU(d, lines.mean + c));
    auto value = Normalized(d, distance, lines, c);
    if constexpr (kAdds) value = hn::Add(value, hn::LoadU(d, z + at));
    // Not Max, which on some instruction sets turns NaN into 0.
    if constexpr (kRectifies) value = hn::IfThenZeroElse(hn::Lt(value, hn::Zero(d)), value);
    hn::StoreU(value, d, y + at);
  });
}

void NormalizeRows(const float* x, const float* z, int64_t rows, int64_t columns,
                   const NormLines<float>& lines, bool rectify, float* y) {
  if (z == nullptr) {
    (rectify ? NormalizeRowsOf<false, true> : NormalizeRowsOf<false, false>)(x, z, rows, columns,
                                                                             lines, y);
  } else {
    (rectify ? NormalizeRowsOf<true, true> : NormalizeRowsOf<true, false>)(x, z, rows, columns,
                                                                           lines, y);
  }
}

template <NormMask kMask>
void GradientRowsOf(const float* x, const NormOutputGradient<float>& gradient, int64_t rows,
                    int64_t columns, const NormLines<float>& lines, const float* offset,
                    const float* factor, float* dx) {
  ForEachVector(rows, columns, [&](auto d, int64_t at, int64_t c) HWY_ATTR {
    const auto distance = hn::Sub(hn::LoadU(d, x + at), hn::LoadU(d, lines.mean + c));
    const auto g = Masked<kMask>(d, gradient, at, distance, lines, c);
    const auto centered = hn::Sub(g, hn::LoadU(d, offset + c));
    const auto change = hn::NegMulAdd(distance, hn::LoadU(d, factor + c), centered);
    hn::StoreU(hn::Mul(hn::LoadU(d, lines.slope + c), change), d, dx + at);
  });
}

void GradientRows(const float* x, const NormOutputGradient<float>& gradient, int64_t rows,
                  int64_t columns, const NormLines<float>& lines, const float* offset,
                  const float* factor, float* dx) {
  (gradient.mask == NormMask::kNone
       ? GradientRowsOf<NormMask::kNone>
       : GradientRowsOf<NormMask::kInput>)(x, gradient, rows, columns, lines, offset, factor, dx);
}

}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(ColumnMoments);
HWY_EXPORT(ColumnGradientSums);
HWY_EXPORT(NormalizeRows);
HWY_EXPORT(GradientRows);

namespace {

// The columns of a tile: four cache lines of a row. An item sums over the rows of one tile.
constexpr int64_t kTile = 64;
// The least number of rows of a part, if there are that many.
constexpr int64_t kLeastRows = 64;

NormParts PartsOf(const NormGeometry& geometry) {
  const int64_t tiles = (geometry.channels + kTile - 1) / kTile;
  // Few channels mean few tiles; the rows are then cut into more parts.
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
      : PartedNormLoops(PartsOf(geometry)),
        geometry_(geometry),
        rows_(geometry.count()),
        columns_(geometry.channels) {}

  void SetBatch(int64_t batch) override {
    geometry_.batch = batch;
    rows_ = geometry_.count();
    SetParts(PartsOf(geometry_));
  }

  void Normalize(const float* x, const float* z, const NormLines<float>& lines, bool rectify,
                 float* y) const override {
    ParallelFor(rows_, GrainOf(columns_), [&](int64_t begin, int64_t end) {
      const int64_t at = begin * columns_;
      HWY_DYNAMIC_DISPATCH(NormalizeRows)
      (x + at, z == nullptr ? nullptr : z + at, end - begin, columns_, lines, rectify, y + at);
    });
  }

  void Gradient(const float* x, const NormOutputGradient<float>& gradient,
                const NormLines<float>& lines, const float* offset, const float* factor,
                float* dx) const override {
    ParallelFor(rows_, GrainOf(columns_), [&](int64_t begin, int64_t end) {
      const int64_t at = begin * columns_;
      HWY_DYNAMIC_DISPATCH(GradientRows)
      (x + at, GradientFrom(gradient, at), end - begin, columns_, lines, offset, factor, dx + at);
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

  void PartGradientSums(const float* x, const NormOutputGradient<float>& gradient,
                        const NormLines<float>& lines, const NormItem& item, double* sums,
                        double* products, float* masked) const override {
    const int64_t column = item.block * kTile;
    const int64_t first = item.begin * columns_ + column;
    HWY_DYNAMIC_DISPATCH(ColumnGradientSums)
    (x + first, GradientFrom(gradient, first), item.end - item.begin, columns_, Width(item.block),
     LinesFrom(lines, column), sums, products, masked == nullptr ? nullptr : masked + first);
  }

  NormGeometry geometry_;
  int64_t rows_;
  int64_t columns_;
};

}  // namespace

std::unique_ptr<NormLoops<float>> MakeColumnNormLoops(const NormGeometry& geometry) {
  return std::make_unique<ColumnNormLoops>(geometry);
}

}  // namespace skiff
#endif
