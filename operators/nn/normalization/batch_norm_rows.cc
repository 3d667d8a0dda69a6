// The passes of batch normalization over images of float32 or half with channels first, plain or
// blocked.
//
// A row is a contiguous part of an image: the pixels of a channel (block 1), or of a block of
// channels, where the channel changes fastest. Either way, element i of a row belongs to channel i
// modulo the block. A group of several vectors is a multiple of every block, so each group sees the
// same channels in the same lanes, and one set of coefficient vectors serves the whole row.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <tuple>

#include "framework/base/parallel.h"
#include "operators/common/cpu/float_loops.h"
#include "operators/nn/normalization/batch_norm_passes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/nn/normalization/batch_norm_rows.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "operators/common/cpu/float_lanes-inl.h"
#include "operators/common/cpu/half_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// At least 16 elements, the largest block, and at least four vectors: their sums are independent,
// so an addition needn't wait for the one before.
constexpr int64_t kVectors = std::max<int64_t>(4, 16 / kLanes);
constexpr int64_t kGroup = kVectors * kLanes;
// The number of groups that float32 sums cover before they are added to float64, which bounds the
// rounding error of long rows.
constexpr int64_t kGroupsOfSum = 256;

// One value per channel, repeated over a group; all zeros if `by_channel` is nullptr.
struct Pattern {
  Pattern(const float* by_channel, int64_t block) : values{} {
    if (by_channel == nullptr) return;
    for (int64_t i = 0; i < kGroup; i += block) {
      for (int64_t c = 0; c < block; ++c) values[static_cast<size_t>(i + c)] = by_channel[c];
    }
  }
  HWY_INLINE FloatVector vector(int64_t index) const {
    return hn::LoadU(FloatTag(), values.data() + index * kLanes);
  }
  std::array<float, kGroup> values;
};

// The coefficients that normalize a group.
struct LinePatterns {
  LinePatterns(const NormLines<float>& lines, int64_t block)
      : mean(lines.mean, block), slope(lines.slope, block), shift(lines.shift, block) {}

  HWY_INLINE FloatVector Normalized(FloatVector distance, int64_t index) const {
    return hn::MulAdd(distance, slope.vector(index), shift.vector(index));
  }
  // Normalizes one element with the rounding of a vector lane (one fused multiply-add, where there
  // is one). The gradient computes the sign of an output again and must find the forward pass's.
  HWY_INLINE float Normalized(float x, size_t index) const {
    const hn::CappedTag<float, 1> d;
    const auto distance = hn::Sub(hn::Set(d, x), hn::Set(d, mean.values[index]));
    return hn::GetLane(
        hn::MulAdd(distance, hn::Set(d, slope.values[index]), hn::Set(d, shift.values[index])));
  }

  Pattern mean;
  Pattern slope;
  Pattern shift;
};

// Returns dy where the mask lets it through, else 0, for the vector at `offset`.
template <NormMask kMask, typename T>
HWY_INLINE FloatVector Masked(const NormImages<T>& images, int64_t offset, FloatVector distance,
                              const LinePatterns& lines, int64_t index) {
  const FloatTag d;
  const auto dy = LoadWide(d, images.dy + offset);
  if constexpr (kMask == NormMask::kNone) return dy;
  const auto output = kMask == NormMask::kInput ? lines.Normalized(distance, index)
                                                : LoadWide(d, images.output + offset);
  return hn::IfThenElseZero(hn::Gt(output, hn::Zero(d)), dy);
}

// Does the same for one element.
template <NormMask kMask, typename T>
HWY_INLINE float MaskedOne(const NormImages<T>& images, int64_t offset, const LinePatterns& lines,
                           size_t index) {
  const auto dy = static_cast<float>(images.dy[offset]);
  if constexpr (kMask == NormMask::kNone) return dy;
  const float output = kMask == NormMask::kInput
                           ? lines.Normalized(static_cast<float>(images.x[offset]), index)
                           : static_cast<float>(images.output[offset]);
  return output > 0 ? dy : 0.0f;
}

// Two sums by channel.
struct Sums {
  double* first;
  double* second;
};

// Sums over a row of `size` elements from `start` on. For each vector of whole groups, calls
// accumulate(index of the vector in the group, offset of its elements, first, second) to add to two
// vectors of sums. For each remaining element, calls accumulate_one(index in the group, offset,
// &first, &second). Adds the sums of all lanes to those of their channels.
template <typename Accumulate, typename AccumulateOne>
HWY_INLINE void SumRow(int64_t start, int64_t size, int64_t block, const Sums& sums,
                       const Accumulate& accumulate, const AccumulateOne& accumulate_one) {
  const FloatTag d;
  const int64_t whole = size / kGroup * kGroup;
  for (int64_t begin = 0; begin < whole; begin += kGroupsOfSum * kGroup) {
    const int64_t end = std::min(whole, begin + kGroupsOfSum * kGroup);
    FloatVector first[kVectors];
    FloatVector second[kVectors];
    for (int64_t k = 0; k < kVectors; ++k) first[k] = second[k] = hn::Zero(d);
    for (int64_t i = begin; i < end; i += kGroup) {
      for (int64_t k = 0; k < kVectors; ++k) {
        accumulate(k, start + i + k * kLanes, first[k], second[k]);
      }
    }
    alignas(64) float lanes[2 * kGroup];
    for (int64_t k = 0; k < kVectors; ++k) {
      hn::Store(first[k], d, lanes + k * kLanes);
      hn::Store(second[k], d, lanes + kGroup + k * kLanes);
    }
    for (int64_t i = 0; i < kGroup; i += block) {
      for (int64_t c = 0; c < block; ++c) {
        sums.first[c] += lanes[i + c];
        sums.second[c] += lanes[kGroup + i + c];
      }
    }
  }
  for (int64_t i = 0; whole + i < size; ++i) {
    accumulate_one(i, start + whole + i, &sums.first[i % block], &sums.second[i % block]);
  }
}

// Adds the sums of x - pivot and of its square over `rows` rows.
template <typename T>
void RowMoments(const T* x, int64_t rows, int64_t row_stride, int64_t size, int64_t block,
                const float* pivot, double* sums, double* squares) {
  const FloatTag d;
  const Pattern pivots(pivot, block);
  for (int64_t row = 0; row < rows; ++row) {
    SumRow(
        row * row_stride, size, block, {sums, squares},
        [&](int64_t k, int64_t at, FloatVector& sum, FloatVector& square) HWY_ATTR {
          const auto distance = hn::Sub(LoadWide(d, x + at), pivots.vector(k));
          sum = hn::Add(sum, distance);
          square = hn::MulAdd(distance, distance, square);
        },
        [&](int64_t i, int64_t at, double* sum, double* square) {
          const float distance = static_cast<float>(x[at]) - pivots.values[static_cast<size_t>(i)];
          *sum += distance;
          *square += static_cast<double>(distance) * distance;
        });
  }
}

// Adds the sums of g and of g · (x - mean) over `rows` rows. With kOutput it also writes g.
template <NormMask kMask, typename T>
void RowGradientSumsOf(const NormImages<T>& given, int64_t rows, int64_t row_stride, int64_t size,
                       int64_t block, const NormLines<float>& lines, double* sums,
                       double* products) {
  const FloatTag d;
  const NormImages<T> images = given;  // stays in registers
  const LinePatterns patterns(lines, block);
  for (int64_t row = 0; row < rows; ++row) {
    SumRow(
        row * row_stride, size, block, {sums, products},
        [&](int64_t k, int64_t at, FloatVector& sum, FloatVector& product) HWY_ATTR {
          const auto distance = hn::Sub(LoadWide(d, images.x + at), patterns.mean.vector(k));
          const auto g = Masked<kMask>(images, at, distance, patterns, k);
          if constexpr (kMask == NormMask::kOutput) StoreRounded(g, d, images.result + at);
          sum = hn::Add(sum, g);
          product = hn::MulAdd(g, distance, product);
        },
        [&](int64_t i, int64_t at, double* sum, double* product) {
          const auto index = static_cast<size_t>(i);
          const float distance = static_cast<float>(images.x[at]) - patterns.mean.values[index];
          const float g = MaskedOne<kMask>(images, at, patterns, index);
          if constexpr (kMask == NormMask::kOutput) images.result[at] = static_cast<T>(g);
          *sum += g;
          *product += static_cast<double>(g) * distance;
        });
  }
}

template <typename T>
void RowGradientSums(const NormImages<T>& images, NormMask mask, int64_t rows, int64_t row_stride,
                     int64_t size, int64_t block, const NormLines<float>& lines, double* sums,
                     double* products) {
  const auto run = [&](auto of) HWY_ATTR {
    of(images, rows, row_stride, size, block, lines, sums, products);
  };
  switch (mask) {
    case NormMask::kNone:
      return run(RowGradientSumsOf<NormMask::kNone, T>);
    case NormMask::kInput:
      return run(RowGradientSumsOf<NormMask::kInput, T>);
    case NormMask::kOutput:
      return run(RowGradientSumsOf<NormMask::kOutput, T>);
  }
}

template <bool kAdds, bool kRectifies, typename T>
void NormalizeRowOf(const NormImages<T>& given, int64_t start, int64_t size, int64_t block,
                    const NormLines<float>& lines) {
  const FloatTag d;
  const NormImages<T> images = given;
  const LinePatterns patterns(lines, block);
  const int64_t whole = size / kGroup * kGroup;
  for (int64_t i = 0; i < whole; i += kGroup) {
    for (int64_t k = 0; k < kVectors; ++k) {
      const int64_t at = start + i + k * kLanes;
      const auto distance = hn::Sub(LoadWide(d, images.x + at), patterns.mean.vector(k));
      auto value = patterns.Normalized(distance, k);
      if constexpr (kAdds) value = hn::Add(value, LoadWide(d, images.z + at));
      // Not Max, which on some instruction sets turns NaN into 0.
      if constexpr (kRectifies) value = hn::IfThenZeroElse(hn::Lt(value, hn::Zero(d)), value);
      StoreRounded(value, d, images.result + at);
    }
  }
  for (int64_t i = whole; i < size; ++i) {
    const int64_t at = start + i;
    float value =
        patterns.Normalized(static_cast<float>(images.x[at]), static_cast<size_t>(i - whole));
    if constexpr (kAdds) value += static_cast<float>(images.z[at]);
    images.result[at] = static_cast<T>(kRectifies && value < 0 ? 0.0f : value);
  }
}

// Of elements [start, start + size).
template <typename T>
void NormalizeRow(const NormImages<T>& images, bool rectify, int64_t start, int64_t size,
                  int64_t block, const NormLines<float>& lines) {
  const auto run =
      images.z == nullptr
          ? (rectify ? NormalizeRowOf<false, true, T> : NormalizeRowOf<false, false, T>)
          : (rectify ? NormalizeRowOf<true, true, T> : NormalizeRowOf<true, false, T>);
  run(images, start, size, block, lines);
}

template <NormMask kMask, typename T>
void GradientRowOf(const NormImages<T>& given, int64_t start, int64_t size, int64_t block,
                   const NormLines<float>& lines, const float* offset, const float* factor) {
  const FloatTag d;
  const NormImages<T> images = given;
  const LinePatterns patterns(lines, block);
  const Pattern offsets(offset, block);
  const Pattern factors(factor, block);
  const int64_t whole = size / kGroup * kGroup;
  for (int64_t i = 0; i < whole; i += kGroup) {
    for (int64_t k = 0; k < kVectors; ++k) {
      const int64_t at = start + i + k * kLanes;
      const auto distance = hn::Sub(LoadWide(d, images.x + at), patterns.mean.vector(k));
      const auto g = Masked<kMask>(images, at, distance, patterns, k);
      const auto centered = hn::Sub(g, offsets.vector(k));
      const auto change = hn::NegMulAdd(distance, factors.vector(k), centered);
      StoreRounded(hn::Mul(patterns.slope.vector(k), change), d, images.result + at);
    }
  }
  for (int64_t i = whole; i < size; ++i) {
    const int64_t at = start + i;
    const auto k = static_cast<size_t>(i - whole);
    const float g = MaskedOne<kMask>(images, at, patterns, k);
    const float distance = static_cast<float>(images.x[at]) - patterns.mean.values[k];
    images.result[at] = static_cast<T>(patterns.slope.values[k] *
                                       (g - offsets.values[k] - distance * factors.values[k]));
  }
}

// Of elements [start, start + size).
template <typename T>
void GradientRow(const NormImages<T>& images, NormMask mask, int64_t start, int64_t size,
                 int64_t block, const NormLines<float>& lines, const float* offset,
                 const float* factor) {
  (mask == NormMask::kNone
       ? GradientRowOf<NormMask::kNone, T>
       : GradientRowOf<NormMask::kInput, T>)(images, start, size, block, lines, offset, factor);
}

template <typename T>
NormRowLoops<T> LoopsOf() {
  return {RowMoments<T>, RowGradientSums<T>, NormalizeRow<T>, GradientRow<T>};
}

FloatLoops<NormRowLoops> Loops() {
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
NormRowLoops<T> LoopsOf() {
  return std::get<NormRowLoops<T>>(HWY_DYNAMIC_DISPATCH(Loops)());
}

constexpr int64_t kMaxBlock = 16;

// An item is one block of channels in some images. There are at least kEnoughItems of them if the
// batch is large enough.
NormParts PartsOf(const NormGeometry& geometry) {
  const int64_t blocks = geometry.padded_channels() / geometry.block;
  return {.units = geometry.batch,
          .values_a_unit = geometry.pixels,
          .parts = std::min(geometry.batch, (NormParts::kEnoughItems + blocks - 1) / blocks),
          .blocks = blocks,
          .block = geometry.block,
          .channels = geometry.padded_channels()};
}

template <typename T>
class VectorNormLoops final : public PartedNormLoops<T> {
 public:
  explicit VectorNormLoops(const NormGeometry& geometry)
      : PartedNormLoops<T>(PartsOf(geometry)),
        geometry_(geometry),
        blocks_(geometry.padded_channels() / geometry.block),
        row_size_(geometry.pixels * geometry.block),
        image_size_(blocks_ * row_size_) {}

  void SetBatch(int64_t batch) override {
    geometry_.batch = batch;
    this->SetParts(PartsOf(geometry_));
  }

  void Normalize(const T* x, const T* z, const NormLines<float>& lines, bool rectify,
                 T* y) const override {
    const NormImages<T> images{.x = x, .z = z, .result = y};
    ForEachRow([&, normalize = LoopsOf<T>().normalize](int64_t row, int64_t c) {
      normalize(images, rectify, row * row_size_, row_size_, geometry_.block, LinesFrom(lines, c));
    });
  }

  void Gradient(const T* x, const NormOutputGradient<T>& gradient, const NormLines<float>& lines,
                const float* offset, const float* factor, T* dx) const override {
    const NormImages<T> images{.x = x, .dy = gradient.dy, .result = dx};
    ForEachRow([&, write = LoopsOf<T>().gradient](int64_t row, int64_t c) {
      write(images, gradient.mask, row * row_size_, row_size_, geometry_.block, LinesFrom(lines, c),
            offset + c, factor + c);
    });
  }

 private:
  // Calls visit(row, first channel of the row).
  template <typename Visit>
  void ForEachRow(const Visit& visit) const {
    ParallelFor(geometry_.batch * blocks_, GrainOf(row_size_), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) visit(row, row % blocks_ * geometry_.block);
    });
  }

  int64_t FirstElement(const NormItem& item) const {
    return item.begin * image_size_ + item.block * row_size_;
  }

  // Sums distances from a pivot, the mean of the part's first pixels, so that one pass over memory
  // suffices. The pivot's pixels belong to the part, so the square of its distance from the mean is
  // at most (pixels of the part / pixels of the pivot) variances, but for the pivot's rounding to
  // float32. That bounds how many digits cancel.
  void PartMoments(const T* x, const NormItem& item, double* means,
                   double* squares) const override {
    const T* first = x + FirstElement(item);
    const int64_t width = geometry_.block;
    const int64_t images = item.end - item.begin;
    std::array<float, kMaxBlock> pivot;
    this->FindPivot(first, std::min<int64_t>(geometry_.pixels, 256), width, width, pivot.data());
    std::fill_n(means, width, 0.0);
    std::fill_n(squares, width, 0.0);
    LoopsOf<T>().moments(first, images, image_size_, row_size_, width, pivot.data(), means,
                         squares);
    this->CenterMoments(pivot.data(), width, images * geometry_.pixels, means, squares);
  }

  void PartGradientSums(const T* x, const NormOutputGradient<T>& gradient,
                        const NormLines<float>& lines, const NormItem& item, double* sums,
                        double* products, T* masked) const override {
    const int64_t first = FirstElement(item);
    const bool writes = gradient.mask == NormMask::kOutput;
    const NormOutputGradient<T> from = GradientFrom(gradient, first);
    const NormImages<T> images{.x = x + first,
                               .dy = from.dy,
                               .output = from.output,
                               .result = writes ? masked + first : nullptr};
    LoopsOf<T>().gradient_sums(images, gradient.mask, item.end - item.begin, image_size_, row_size_,
                               geometry_.block, LinesFrom(lines, item.block * geometry_.block),
                               sums, products);
  }

  NormGeometry geometry_;
  int64_t blocks_;
  int64_t row_size_;
  int64_t image_size_;
};

}  // namespace

template <typename T>
std::unique_ptr<NormLoops<T>> MakeVectorNormLoops(const NormGeometry& geometry) {
  return std::make_unique<VectorNormLoops<T>>(geometry);
}

template std::unique_ptr<NormLoops<float>> MakeVectorNormLoops<float>(const NormGeometry&);
template std::unique_ptr<NormLoops<Float16>> MakeVectorNormLoops<Float16>(const NormGeometry&);
template std::unique_ptr<NormLoops<BFloat16>> MakeVectorNormLoops<BFloat16>(const NormGeometry&);

}  // namespace skiff
#endif
