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

#include "framework/base/parallel.h"
#include "operators/nn/normalization/batch_norm_passes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/nn/normalization/batch_norm_rows.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "operators/common/cpu/float_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At least 16 elements, the largest block, and at least four vectors: their sums are independent,
// so an addition needn't wait for the one before.
constexpr int64_t kVectors = std::max<int64_t>(4, 16 / kLanes);
constexpr int64_t kGroup = kVectors * kLanes;
static_assert(NormImages::kPart % kGroup == 0);
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

// Returns dy where the mask lets it through, else 0, for the vector at `offset` of a part.
template <NormMask kMask>
HWY_INLINE FloatVector Masked(const NormPart& part, int64_t offset, FloatVector distance,
                              const LinePatterns& lines, int64_t index) {
  const FloatTag d;
  const auto dy = hn::LoadU(d, part.dy + offset);
  if constexpr (kMask == NormMask::kNone) return dy;
  const auto output = kMask == NormMask::kInput ? lines.Normalized(distance, index)
                                                : hn::LoadU(d, part.output + offset);
  return hn::IfThenElseZero(hn::Gt(output, hn::Zero(d)), dy);
}

// Does the same for one element.
template <NormMask kMask>
HWY_INLINE float MaskedOne(const NormPart& part, int64_t offset, const LinePatterns& lines,
                           size_t index) {
  if constexpr (kMask == NormMask::kNone) return part.dy[offset];
  const float output =
      kMask == NormMask::kInput ? lines.Normalized(part.x[offset], index) : part.output[offset];
  return output > 0 ? part.dy[offset] : 0.0f;
}

// Two sums by channel.
struct Sums {
  double* first;
  double* second;
};

// Calls use(part, its elements) for the parts of elements [begin, end) of images, in their order.
// `use` takes a copy of the part, which stays in registers.
template <typename Use>
HWY_INLINE void ForEachPart(const NormImages& images, int64_t begin, int64_t end, const Use& use) {
  NormImages::Scratch scratch;
  for (int64_t i = begin; i < end; i += NormImages::kPart) {
    const NormSpan span{.first = i, .width = std::min(NormImages::kPart, end - i)};
    const NormPart part = images.Read(span, &scratch);
    use(part, span.width);
    images.Write(span, part);
  }
}

// Sums over a row of `size` elements of images from `start` on. For each vector of whole groups,
// calls accumulate(part, index of the vector in the group, offset of its elements in the part,
// first, second) to add to two vectors of sums. For each remaining element, calls
// accumulate_one(part, index in the group, offset, &first, &second). Adds the sums of all lanes to
// those of their channels.
template <typename Accumulate, typename AccumulateOne>
HWY_INLINE void SumRow(const NormImages& images, int64_t start, int64_t size, int64_t block,
                       const Sums& sums, const Accumulate& accumulate,
                       const AccumulateOne& accumulate_one) {
  const FloatTag d;
  const int64_t whole = size / kGroup * kGroup;
  for (int64_t begin = 0; begin < whole; begin += kGroupsOfSum * kGroup) {
    const int64_t end = std::min(whole, begin + kGroupsOfSum * kGroup);
    FloatVector first[kVectors];
    FloatVector second[kVectors];
    for (int64_t k = 0; k < kVectors; ++k) first[k] = second[k] = hn::Zero(d);
    ForEachPart(images, start + begin, start + end, [&](NormPart part, int64_t count) HWY_ATTR {
      for (int64_t i = 0; i < count; i += kGroup) {
        for (int64_t k = 0; k < kVectors; ++k) {
          accumulate(part, k, i + k * kLanes, first[k], second[k]);
        }
      }
    });
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
  ForEachPart(images, start + whole, start + size, [&](NormPart part, int64_t count) HWY_ATTR {
    for (int64_t i = 0; i < count; ++i) {
      accumulate_one(part, i, &sums.first[i % block], &sums.second[i % block]);
    }
  });
}

// Adds the sums of x - pivot and of its square over `rows` rows.
void RowMoments(const NormImages& images, int64_t rows, int64_t row_stride, int64_t size,
                int64_t block, const float* pivot, double* sums, double* squares) {
  const FloatTag d;
  const Pattern pivots(pivot, block);
  for (int64_t row = 0; row < rows; ++row) {
    SumRow(
        images, row * row_stride, size, block, {sums, squares},
        [&](const NormPart& part, int64_t k, int64_t offset, FloatVector& sum, FloatVector& square)
            HWY_ATTR {
              const auto distance = hn::Sub(hn::LoadU(d, part.x + offset), pivots.vector(k));
              sum = hn::Add(sum, distance);
              square = hn::MulAdd(distance, distance, square);
            },
        [&](const NormPart& part, int64_t i, double* sum, double* square) {
          const float distance = part.x[i] - pivots.values[static_cast<size_t>(i)];
          *sum += distance;
          *square += static_cast<double>(distance) * distance;
        });
  }
}

// Adds the sums of g and of g · (x - mean) over `rows` rows. With kOutput it also writes g.
template <NormMask kMask>
void RowGradientSumsOf(const NormImages& images, int64_t rows, int64_t row_stride, int64_t size,
                       int64_t block, const NormLines<float>& lines, double* sums,
                       double* products) {
  const FloatTag d;
  const LinePatterns patterns(lines, block);
  for (int64_t row = 0; row < rows; ++row) {
    SumRow(
        images, row * row_stride, size, block, {sums, products},
        [&](const NormPart& part, int64_t k, int64_t offset, FloatVector& sum, FloatVector& product)
            HWY_ATTR {
              const auto distance = hn::Sub(hn::LoadU(d, part.x + offset), patterns.mean.vector(k));
              const auto g = Masked<kMask>(part, offset, distance, patterns, k);
              if constexpr (kMask == NormMask::kOutput) hn::StoreU(g, d, part.result + offset);
              sum = hn::Add(sum, g);
              product = hn::MulAdd(g, distance, product);
            },
        [&](const NormPart& part, int64_t i, double* sum, double* product) {
          const auto index = static_cast<size_t>(i);
          const float distance = part.x[i] - patterns.mean.values[index];
          const float g = MaskedOne<kMask>(part, i, patterns, index);
          if constexpr (kMask == NormMask::kOutput) part.result[i] = g;
          *sum += g;
          *product += static_cast<double>(g) * distance;
        });
  }
}

void RowGradientSums(const NormImages& images, NormMask mask, int64_t rows, int64_t row_stride,
                     int64_t size, int64_t block, const NormLines<float>& lines, double* sums,
                     double* products) {
  const auto run = [&](auto of) HWY_ATTR {
    of(images, rows, row_stride, size, block, lines, sums, products);
  };
  switch (mask) {
    case NormMask::kNone:
      return run(RowGradientSumsOf<NormMask::kNone>);
    case NormMask::kInput:
      return run(RowGradientSumsOf<NormMask::kInput>);
    case NormMask::kOutput:
      return run(RowGradientSumsOf<NormMask::kOutput>);
  }
}

template <bool kAdds, bool kRectifies>
HWY_INLINE void NormalizePart(const NormPart& part, int64_t size, const LinePatterns& patterns) {
  const FloatTag d;
  const int64_t whole = size / kGroup * kGroup;
  for (int64_t i = 0; i < whole; i += kGroup) {
    for (int64_t k = 0; k < kVectors; ++k) {
      const int64_t at = i + k * kLanes;
      const auto distance = hn::Sub(hn::LoadU(d, part.x + at), patterns.mean.vector(k));
      auto value = patterns.Normalized(distance, k);
      if constexpr (kAdds) value = hn::Add(value, hn::LoadU(d, part.z + at));
      // Not Max, which on some instruction sets turns NaN into 0.
      if constexpr (kRectifies) value = hn::IfThenZeroElse(hn::Lt(value, hn::Zero(d)), value);
      hn::StoreU(value, d, part.result + at);
    }
  }
  for (int64_t i = whole; i < size; ++i) {
    float value = patterns.Normalized(part.x[i], static_cast<size_t>(i - whole));
    if constexpr (kAdds) value += part.z[i];
    part.result[i] = kRectifies && value < 0 ? 0.0f : value;
  }
}

template <bool kAdds, bool kRectifies>
void NormalizeRowOf(const NormImages& images, int64_t start, int64_t size, int64_t block,
                    const NormLines<float>& lines) {
  const LinePatterns patterns(lines, block);
  ForEachPart(images, start, start + size, [&](NormPart part, int64_t count) HWY_ATTR {
    NormalizePart<kAdds, kRectifies>(part, count, patterns);
  });
}

// Of elements [start, start + size).
void NormalizeRow(const NormImages& images, bool adds, int64_t start, int64_t size, int64_t block,
                  const NormLines<float>& lines, bool rectify) {
  const auto run = adds ? (rectify ? NormalizeRowOf<true, true> : NormalizeRowOf<true, false>)
                        : (rectify ? NormalizeRowOf<false, true> : NormalizeRowOf<false, false>);
  run(images, start, size, block, lines);
}

template <NormMask kMask>
HWY_INLINE void GradientPart(const NormPart& part, int64_t size, const LinePatterns& patterns,
                             const Pattern& offsets, const Pattern& factors) {
  const FloatTag d;
  const int64_t whole = size / kGroup * kGroup;
  for (int64_t i = 0; i < whole; i += kGroup) {
    for (int64_t k = 0; k < kVectors; ++k) {
      const int64_t at = i + k * kLanes;
      const auto distance = hn::Sub(hn::LoadU(d, part.x + at), patterns.mean.vector(k));
      const auto g = Masked<kMask>(part, at, distance, patterns, k);
      const auto centered = hn::Sub(g, offsets.vector(k));
      const auto change = hn::NegMulAdd(distance, factors.vector(k), centered);
      hn::StoreU(hn::Mul(patterns.slope.vector(k), change), d, part.result + at);
    }
  }
  for (int64_t i = whole; i < size; ++i) {
    const auto k = static_cast<size_t>(i - whole);
    const float g = MaskedOne<kMask>(part, i, patterns, k);
    const float distance = part.x[i] - patterns.mean.values[k];
    part.result[i] =
        patterns.slope.values[k] * (g - offsets.values[k] - distance * factors.values[k]);
  }
}

template <NormMask kMask>
void GradientRowOf(const NormImages& images, int64_t start, int64_t size, int64_t block,
                   const NormLines<float>& lines, const float* offset, const float* factor) {
  const LinePatterns patterns(lines, block);
  const Pattern offsets(offset, block);
  const Pattern factors(factor, block);
  ForEachPart(images, start, start + size, [&](NormPart part, int64_t count) HWY_ATTR {
    GradientPart<kMask>(part, count, patterns, offsets, factors);
  });
}

// Of elements [start, start + size).
void GradientRow(const NormImages& images, NormMask mask, int64_t start, int64_t size,
                 int64_t block, const NormLines<float>& lines, const float* offset,
                 const float* factor) {
  (mask == NormMask::kNone
       ? GradientRowOf<NormMask::kNone>
       : GradientRowOf<NormMask::kInput>)(images, start, size, block, lines, offset, factor);
}

}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(RowMoments);
HWY_EXPORT(RowGradientSums);
HWY_EXPORT(NormalizeRow);
HWY_EXPORT(GradientRow);

namespace {

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
    const NormImages images(x, z, {}, y);
    ForEachRow([&](int64_t row, int64_t c) {
      HWY_DYNAMIC_DISPATCH(NormalizeRow)
      (images, z != nullptr, row * row_size_, row_size_, geometry_.block, LinesFrom(lines, c),
       rectify);
    });
  }

  void Gradient(const T* x, const NormOutputGradient<T>& gradient, const NormLines<float>& lines,
                const float* offset, const float* factor, T* dx) const override {
    const NormImages images(x, nullptr, gradient, dx);
    ForEachRow([&](int64_t row, int64_t c) {
      HWY_DYNAMIC_DISPATCH(GradientRow)
      (images, gradient.mask, row * row_size_, row_size_, geometry_.block, LinesFrom(lines, c),
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
    HWY_DYNAMIC_DISPATCH(RowMoments)
    (NormImages(first, nullptr, {}, nullptr), images, image_size_, row_size_, width, pivot.data(),
     means, squares);
    this->CenterMoments(pivot.data(), width, images * geometry_.pixels, means, squares);
  }

  void PartGradientSums(const T* x, const NormOutputGradient<T>& gradient,
                        const NormLines<float>& lines, const NormItem& item, double* sums,
                        double* products, T* masked) const override {
    const int64_t first = FirstElement(item);
    const bool writes = gradient.mask == NormMask::kOutput;
    const NormImages images(x + first, nullptr, GradientFrom(gradient, first),
                            writes ? masked + first : nullptr);
    HWY_DYNAMIC_DISPATCH(RowGradientSums)
    (images, gradient.mask, item.end - item.begin, image_size_, row_size_, geometry_.block,
     LinesFrom(lines, item.block * geometry_.block), sums, products);
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
