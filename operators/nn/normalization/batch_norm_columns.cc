// The passes of batch normalization over rows of channels, float32 or half: images with channels
// last, and batches of vectors. A vector holds neighbouring channels of one row, so a sum by
// channel needs no sum across lanes, and the coefficients load as vectors.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <tuple>

#include "framework/base/parallel.h"
#include "operators/common/cpu/float_loops.h"
#include "operators/nn/normalization/batch_norm_passes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/nn/normalization/batch_norm_columns.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "operators/common/cpu/half_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

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

// Calls accumulate(tag, offset, column, first, second), which adds to two vectors of sums, for
// kVectors neighbouring vectors of columns in each row. Adds the results to `sums`.
template <int64_t kVectors, class D, typename Accumulate>
HWY_INLINE void SumVectors(D d, const NormSpan& of, int64_t column, const ColumnSums& sums,
                           const Accumulate& accumulate) {
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));
  for (int64_t begin = 0; begin < of.rows; begin += kRowsOfSum) {
    const int64_t end = std::min(of.rows, begin + kRowsOfSum);
    hn::Vec<D> first[kVectors];
    hn::Vec<D> second[kVectors];
    for (int64_t k = 0; k < kVectors; ++k) first[k] = second[k] = hn::Zero(d);
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t k = 0; k < kVectors; ++k) {
        const int64_t c = column + k * kLanes;
        accumulate(d, of.first + row * of.stride + c, c, first[k], second[k]);
      }
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
HWY_INLINE void SumColumns(const NormSpan& of, const ColumnSums& sums,
                           const Accumulate& accumulate) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  // Four vectors at a time: their sums are independent, and each visit to a row uses more of its
  // cache lines. The tag of one lane takes what doesn't fill a vector, with the same rounding.
  for (; c + 4 * lanes <= of.width; c += 4 * lanes) SumVectors<4>(d, of, c, sums, accumulate);
  for (; c + lanes <= of.width; c += lanes) SumVectors<1>(d, of, c, sums, accumulate);
  for (; c < of.width; ++c) SumVectors<1>(OneFloatTag(), of, c, sums, accumulate);
}

// Adds the sums of x - pivot and of its square for each column.
template <typename T>
void ColumnMoments(const T* x, const NormSpan& of, const float* pivot, double* sums,
                   double* squares) {
  SumColumns(of, {sums, squares},
             [&](auto d, int64_t at, int64_t c, auto& sum, auto& square) HWY_ATTR {
               const auto distance = hn::Sub(LoadWide(d, x + at), hn::LoadU(d, pivot + c));
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
template <NormMask kMask, class D, typename T>
HWY_INLINE hn::Vec<D> Masked(D d, const NormImages<T>& images, int64_t at, hn::Vec<D> distance,
                             const NormLines<float>& lines, int64_t c) {
  const auto dy = LoadWide(d, images.dy + at);
  if constexpr (kMask == NormMask::kNone) return dy;
  const auto output = kMask == NormMask::kInput ? Normalized(d, distance, lines, c)
                                                : LoadWide(d, images.output + at);
  return hn::IfThenElseZero(hn::Gt(output, hn::Zero(d)), dy);
}

// Adds the sums of g and of g · (x - mean) for each column. With kOutput it also writes g.
template <NormMask kMask, typename T>
void ColumnGradientSumsOf(const NormImages<T>& given, const NormSpan& of,
                          const NormLines<float>& lines, double* sums, double* products) {
  const NormImages<T> images = given;  // stays in registers
  SumColumns(
      of, {sums, products}, [&](auto d, int64_t at, int64_t c, auto& sum, auto& product) HWY_ATTR {
        const auto distance = hn::Sub(LoadWide(d, images.x + at), hn::LoadU(d, lines.mean + c));
        const auto g = Masked<kMask>(d, images, at, distance, lines, c);
        if constexpr (kMask == NormMask::kOutput) StoreRounded(g, d, images.result + at);
        sum = hn::Add(sum, g);
        product = hn::MulAdd(g, distance, product);
      });
}

template <typename T>
void ColumnGradientSums(const NormImages<T>& images, NormMask mask, const NormSpan& of,
                        const NormLines<float>& lines, double* sums, double* products) {
  const auto run = [&](auto add) HWY_ATTR { add(images, of, lines, sums, products); };
  switch (mask) {
    case NormMask::kNone:
      return run(ColumnGradientSumsOf<NormMask::kNone, T>);
    case NormMask::kInput:
      return run(ColumnGradientSumsOf<NormMask::kInput, T>);
    case NormMask::kOutput:
      return run(ColumnGradientSumsOf<NormMask::kOutput, T>);
  }
}

// Calls visit(tag, offset, column) for the vectors of every row.
template <typename Visit>
HWY_INLINE void ForEachVector(const NormSpan& of, const Visit& visit) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t row = 0; row < of.rows; ++row) {
    const int64_t at = of.first + row * of.stride;
    int64_t c = 0;
    for (; c + lanes <= of.width; c += lanes) visit(d, at + c, c);
    for (; c < of.width; ++c) visit(OneFloatTag(), at + c, c);
  }
}

template <bool kAdds, bool kRectifies, typename T>
void NormalizeRowsOf(const NormImages<T>& given, const NormSpan& of,
                     const NormLines<float>& lines) {
  const NormImages<T> images = given;
  ForEachVector(of, [&](auto d, int64_t at, int64_t c) HWY_ATTR {
    const auto distance = hn::Sub(LoadWide(d, images.x + at), hn::LoadU(d, lines.mean + c));
    auto value = Normalized(d, distance, lines, c);
    if constexpr (kAdds) value = hn::Add(value, LoadWide(d, images.z + at));
    // Not Max, which on some instruction sets turns NaN into 0.
    if constexpr (kRectifies) value = hn::IfThenZeroElse(hn::Lt(value, hn::Zero(d)), value);
    StoreRounded(value, d, images.result + at);
  });
}

template <typename T>
void NormalizeRows(const NormImages<T>& images, bool rectify, const NormSpan& of,
                   const NormLines<float>& lines) {
  const auto run =
      images.z == nullptr
          ? (rectify ? NormalizeRowsOf<false, true, T> : NormalizeRowsOf<false, false, T>)
          : (rectify ? NormalizeRowsOf<true, true, T> : NormalizeRowsOf<true, false, T>);
  run(images, of, lines);
}

template <NormMask kMask, typename T>
void GradientRowsOf(const NormImages<T>& given, const NormSpan& of, const NormLines<float>& lines,
                    const float* offset, const float* factor) {
  const NormImages<T> images = given;
  ForEachVector(of, [&](auto d, int64_t at, int64_t c) HWY_ATTR {
    const auto distance = hn::Sub(LoadWide(d, images.x + at), hn::LoadU(d, lines.mean + c));
    const auto g = Masked<kMask>(d, images, at, distance, lines, c);
    const auto centered = hn::Sub(g, hn::LoadU(d, offset + c));
    const auto change = hn::NegMulAdd(distance, hn::LoadU(d, factor + c), centered);
    StoreRounded(hn::Mul(hn::LoadU(d, lines.slope + c), change), d, images.result + at);
  });
}

template <typename T>
void GradientRows(const NormImages<T>& images, NormMask mask, const NormSpan& of,
                  const NormLines<float>& lines, const float* offset, const float* factor) {
  (mask == NormMask::kNone
       ? GradientRowsOf<NormMask::kNone, T>
       : GradientRowsOf<NormMask::kInput, T>)(images, of, lines, offset, factor);
}

template <typename T>
NormColumnLoops<T> LoopsOf() {
  return {ColumnMoments<T>, ColumnGradientSums<T>, NormalizeRows<T>, GradientRows<T>};
}

FloatLoops<NormColumnLoops> Loops() {
  return {LoopsOf<float>(), LoopsOf<Float16>(), LoopsOf<BFloat16>()};
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(Loops);

namespace {

template <typename T>
NormColumnLoops<T> LoopsOf() {
  return std::get<NormColumnLoops<T>>(HWY_DYNAMIC_DISPATCH(Loops)());
}

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

template <typename T>
class ColumnNormLoops final : public PartedNormLoops<T> {
 public:
  explicit ColumnNormLoops(const NormGeometry& geometry)
      : PartedNormLoops<T>(PartsOf(geometry)),
        geometry_(geometry),
        rows_(geometry.count()),
        columns_(geometry.channels) {}

  void SetBatch(int64_t batch) override {
    geometry_.batch = batch;
    rows_ = geometry_.count();
    this->SetParts(PartsOf(geometry_));
  }

  void Normalize(const T* x, const T* z, const NormLines<float>& lines, bool rectify,
                 T* y) const override {
    const NormImages<T> images{.x = x, .z = z, .result = y};
    const auto normalize = LoopsOf<T>().normalize;
    ParallelFor(rows_, GrainOf(columns_), [&](int64_t begin, int64_t end) {
      normalize(images, rectify, SpanOf(begin, end), lines);
    });
  }

  void Gradient(const T* x, const NormOutputGradient<T>& gradient, const NormLines<float>& lines,
                const float* offset, const float* factor, T* dx) const override {
    const NormImages<T> images{.x = x, .dy = gradient.dy, .result = dx};
    const auto write = LoopsOf<T>().gradient;
    ParallelFor(rows_, GrainOf(columns_), [&](int64_t begin, int64_t end) {
      write(images, gradient.mask, SpanOf(begin, end), lines, offset, factor);
    });
  }

 private:
  int64_t Width(int64_t tile) const { return std::min(kTile, columns_ - tile * kTile); }
  // Returns whole rows.
  NormSpan SpanOf(int64_t begin, int64_t end) const {
    return {begin * columns_, end - begin, columns_, columns_};
  }

  void PartMoments(const T* x, const NormItem& item, double* means,
                   double* squares) const override {
    const T* first = x + item.begin * columns_ + item.block * kTile;
    const int64_t width = Width(item.block);
    static_assert(kTile <= PartedNormLoops<T>::kMostPivots);
    std::array<float, kTile> pivot;
    const int64_t rows = item.end - item.begin;
    this->FindPivot(first, std::min(rows, kLeastRows), columns_, width, pivot.data());
    std::fill_n(means, width, 0.0);
    std::fill_n(squares, width, 0.0);
    LoopsOf<T>().moments(first, NormSpan{0, rows, columns_, width}, pivot.data(), means, squares);
    this->CenterMoments(pivot.data(), width, rows, means, squares);
  }

  void PartGradientSums(const T* x, const NormOutputGradient<T>& gradient,
                        const NormLines<float>& lines, const NormItem& item, double* sums,
                        double* products, T* masked) const override {
    const int64_t column = item.block * kTile;
    const int64_t first = item.begin * columns_ + column;
    const bool writes = gradient.mask == NormMask::kOutput;
    const NormOutputGradient<T> from = GradientFrom(gradient, first);
    const NormImages<T> images{.x = x + first,
                               .dy = from.dy,
                               .output = from.output,
                               .result = writes ? masked + first : nullptr};
    LoopsOf<T>().gradient_sums(images, gradient.mask,
                               NormSpan{0, item.end - item.begin, columns_, Width(item.block)},
                               LinesFrom(lines, column), sums, products);
  }

  NormGeometry geometry_;
  int64_t rows_;
  int64_t columns_;
};

}  // namespace

template <typename T>
std::unique_ptr<NormLoops<T>> MakeColumnNormLoops(const NormGeometry& geometry) {
  return std::make_unique<ColumnNormLoops<T>>(geometry);
}

template std::unique_ptr<NormLoops<float>> MakeColumnNormLoops<float>(const NormGeometry&);
template std::unique_ptr<NormLoops<Float16>> MakeColumnNormLoops<Float16>(const NormGeometry&);
template std::unique_ptr<NormLoops<BFloat16>> MakeColumnNormLoops<BFloat16>(const NormGeometry&);

}  // namespace skiff
#endif
