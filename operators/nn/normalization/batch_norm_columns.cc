// The passes of batch normalization over rows of channels, float32 or half: images with channels
// last, and batches of vectors. A vector holds neighbouring channels of one row, so a sum by
// channel needs no sum across lanes, and the coefficients load as vectors.
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

// Calls use(part, the rows in it) for the parts of a span whose rows have at most kPart elements.
// `use` takes a copy of the part, which stays in registers.
template <typename Use>
HWY_INLINE void ForEachPart(const NormImages& images, const NormSpan& of, const Use& use) {
  NormImages::Scratch scratch;
  const int64_t most = NormImages::kPart / of.width;
  for (int64_t row = 0; row < of.rows; row += most) {
    NormSpan span = of;
    span.first += row * of.stride;
    span.rows = std::min(most, of.rows - row);
    const NormPart part = images.Read(span, &scratch);
    use(part, span.rows);
    images.Write(span, part);
  }
}

// Calls accumulate(tag, part, offset in the part, column, first, second), which adds to two vectors
// of sums, for kVectors neighbouring vectors of columns in each row. Adds the results to `sums`.
template <int64_t kVectors, class D, typename Accumulate>
HWY_INLINE void SumVectors(D d, const NormImages& images, const NormSpan& of, int64_t column,
                           const ColumnSums& sums, const Accumulate& accumulate) {
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));
  for (int64_t begin = 0; begin < of.rows; begin += kRowsOfSum) {
    const int64_t end = std::min(of.rows, begin + kRowsOfSum);
    hn::Vec<D> first[kVectors];
    hn::Vec<D> second[kVectors];
    for (int64_t k = 0; k < kVectors; ++k) first[k] = second[k] = hn::Zero(d);
    const auto add = [&](NormPart part, int64_t rows) HWY_ATTR {
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t k = 0; k < kVectors; ++k) {
          accumulate(d, part, row * part.stride + k * kLanes, column + k * kLanes, first[k],
                     second[k]);
        }
      }
    };
    ForEachPart(images,
                {.first = of.first + begin * of.stride + column,
                 .rows = end - begin,
                 .stride = of.stride,
                 .width = kVectors * kLanes},
                add);
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
HWY_INLINE void SumColumns(const NormImages& images, const NormSpan& of, const ColumnSums& sums,
                           const Accumulate& accumulate) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  // Four vectors at a time: their sums are independent, and each visit to a row uses more of its
  // cache lines. The tag of one lane takes what doesn't fill a vector, with the same rounding.
  for (; c + 4 * lanes <= of.width; c += 4 * lanes) {
    SumVectors<4>(d, images, of, c, sums, accumulate);
  }
  for (; c + lanes <= of.width; c += lanes) SumVectors<1>(d, images, of, c, sums, accumulate);
  for (; c < of.width; ++c) SumVectors<1>(OneFloatTag(), images, of, c, sums, accumulate);
}

// Adds the sums of x - pivot and of its square for each column.
void ColumnMoments(const NormImages& images, const NormSpan& of, const float* pivot, double* sums,
                   double* squares) {
  SumColumns(
      images, of, {sums, squares},
      [&](auto d, const NormPart& part, int64_t at, int64_t c, auto& sum, auto& square) HWY_ATTR {
        const auto distance = hn::Sub(hn::LoadU(d, part.x + at), hn::LoadU(d, pivot + c));
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
HWY_INLINE hn::Vec<D> Masked(D d, const NormPart& part, int64_t at, hn::Vec<D> distance,
                             const NormLines<float>& lines, int64_t c) {
  const auto dy = hn::LoadU(d, part.dy + at);
  if constexpr (kMask == NormMask::kNone) return dy;
  const auto output = kMask == NormMask::kInput ? Normalized(d, distance, lines, c)
                                                : hn::LoadU(d, part.output + at);
  return hn::IfThenElseZero(hn::Gt(output, hn::Zero(d)), dy);
}

// Adds the sums of g and of g · (x - mean) for each column. With kOutput it also writes g.
template <NormMask kMask>
void ColumnGradientSumsOf(const NormImages& images, const NormSpan& of,
                          const NormLines<float>& lines, double* sums, double* products) {
  SumColumns(
      images, of, {sums, products},
      [&](auto d, const NormPart& part, int64_t at, int64_t c, auto& sum, auto& product) HWY_ATTR {
        const auto distance = hn::Sub(hn::LoadU(d, part.x + at), hn::LoadU(d, lines.mean + c));
        const auto g = Masked<kMask>(d, part, at, distance, lines, c);
        if constexpr (kMask == NormMask::kOutput) hn::StoreU(g, d, part.result + at);
        sum = hn::Add(sum, g);
        product = hn::MulAdd(g, distance, product);
      });
}

void ColumnGradientSums(const NormImages& images, NormMask mask, const NormSpan& of,
                        const NormLines<float>& lines, double* sums, double* products) {
  const auto run = [&](auto add) HWY_ATTR { add(images, of, lines, sums, products); };
  switch (mask) {
    case NormMask::kNone:
      return run(ColumnGradientSumsOf<NormMask::kNone>);
    case NormMask::kInput:
      return run(ColumnGradientSumsOf<NormMask::kInput>);
    case NormMask::kOutput:
      return run(ColumnGradientSumsOf<NormMask::kOutput>);
  }
}

// Calls visit(tag, part, offset in the part, column) for the vectors of every row.
template <typename Visit>
HWY_INLINE void ForEachVector(const NormImages& images, const NormSpan& of, const Visit& visit) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t column = 0; column < of.width; column += NormImages::kPart) {
    const int64_t width = std::min(NormImages::kPart, of.width - column);
    const auto visit_part = [&](NormPart part, int64_t rows) HWY_ATTR {
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t at = row * part.stride;
        int64_t c = 0;
        for (; c + lanes <= width; c += lanes) visit(d, part, at + c, column + c);
        for (; c < width; ++c) visit(OneFloatTag(), part, at + c, column + c);
      }
    };
    ForEachPart(images,
                {.first = of.first + column, .rows = of.rows, .stride = of.stride, .width = width},
                visit_part);
  }
}

template <bool kAdds, bool kRectifies>
void NormalizeRowsOf(const NormImages& images, const NormSpan& of, const NormLines<float>& lines) {
  ForEachVector(images, of, [&](auto d, const NormPart& part, int64_t at, int64_t c) HWY_ATTR {
    const auto distance = hn::Sub(hn::LoadU(d, part.x + at), hn::LoadU(d, lines.mean + c));
    auto value = Normalized(d, distance, lines, c);
    if constexpr (kAdds) value = hn::Add(value, hn::LoadU(d, part.z + at));
    // Not Max, which on some instruction sets turns NaN into 0.
    if constexpr (kRectifies) value = hn::IfThenZeroElse(hn::Lt(value, hn::Zero(d)), value);
    hn::StoreU(value, d, part.result + at);
  });
}

void NormalizeRows(const NormImages& images, bool adds, const NormSpan& of,
                   const NormLines<float>& lines, bool rectify) {
  const auto run = adds ? (rectify ? NormalizeRowsOf<true, true> : NormalizeRowsOf<true, false>)
                        : (rectify ? NormalizeRowsOf<false, true> : NormalizeRowsOf<false, false>);
  run(images, of, lines);
}

template <NormMask kMask>
void GradientRowsOf(const NormImages& images, const NormSpan& of, const NormLines<float>& lines,
                    const float* offset, const float* factor) {
  ForEachVector(images, of, [&](auto d, const NormPart& part, int64_t at, int64_t c) HWY_ATTR {
    const auto distance = hn::Sub(hn::LoadU(d, part.x + at), hn::LoadU(d, lines.mean + c));
    const auto g = Masked<kMask>(d, part, at, distance, lines, c);
    const auto centered = hn::Sub(g, hn::LoadU(d, offset + c));
    const auto change = hn::NegMulAdd(distance, hn::LoadU(d, factor + c), centered);
    hn::StoreU(hn::Mul(hn::LoadU(d, lines.slope + c), change), d, part.result + at);
  });
}

void GradientRows(const NormImages& images, NormMask mask, const NormSpan& of,
                  const NormLines<float>& lines, const float* offset, const float* factor) {
  (mask == NormMask::kNone ? GradientRowsOf<NormMask::kNone>
                           : GradientRowsOf<NormMask::kInput>)(images, of, lines, offset, factor);
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
    const NormImages images(x, z, {}, y);
    ParallelFor(rows_, GrainOf(columns_), [&](int64_t begin, int64_t end) {
      HWY_DYNAMIC_DISPATCH(NormalizeRows)
      (images, z != nullptr, SpanOf(begin, end), lines, rectify);
    });
  }

  void Gradient(const T* x, const NormOutputGradient<T>& gradient, const NormLines<float>& lines,
                const float* offset, const float* factor, T* dx) const override {
    const NormImages images(x, nullptr, gradient, dx);
    ParallelFor(rows_, GrainOf(columns_), [&](int64_t begin, int64_t end) {
      HWY_DYNAMIC_DISPATCH(GradientRows)
      (images, gradient.mask, SpanOf(begin, end), lines, offset, factor);
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
    std::array<float, kTile> pivot;
    const int64_t rows = item.end - item.begin;
    this->FindPivot(first, std::min(rows, kLeastRows), columns_, width, pivot.data());
    std::fill_n(means, width, 0.0);
    std::fill_n(squares, width, 0.0);
    HWY_DYNAMIC_DISPATCH(ColumnMoments)
    (NormImages(first, nullptr, {}, nullptr), NormSpan{0, rows, columns_, width}, pivot.data(),
     means, squares);
    this->CenterMoments(pivot.data(), width, rows, means, squares);
  }

  void PartGradientSums(const T* x, const NormOutputGradient<T>& gradient,
                        const NormLines<float>& lines, const NormItem& item, double* sums,
                        double* products, T* masked) const override {
    const int64_t column = item.block * kTile;
    const int64_t first = item.begin * columns_ + column;
    const bool writes = gradient.mask == NormMask::kOutput;
    const NormImages images(x + first, nullptr, GradientFrom(gradient, first),
                            writes ? masked + first : nullptr);
    HWY_DYNAMIC_DISPATCH(ColumnGradientSums)
    (images, gradient.mask, NormSpan{0, item.end - item.begin, columns_, Width(item.block)},
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
