// The passes of batch normalization over float32 images with channels first, plain or blocked.
//
// A row is what lies together of an image: the pixels of a channel, or of a block of channels,
// whose channel then changes fastest. Either way the channel of element i of a row is i modulo the
// block, and a group of several vectors, a multiple of every block, sees the same channels each
// time.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

#include "framework/base/parallel.h"
#include "operators/nn/batch_norm_shared.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/nn/batch_norm_kernel.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skiff {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;
using FloatVector = hn::Vec<FloatTag>;

constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(FloatTag()));
constexpr int64_t kVectors = std::max<int64_t>(4, 16 / kLanes);
constexpr int64_t kGroup = kVectors * kLanes;
// Groups whose sums stay in float32, so that rounding doesn't pile up.
constexpr int64_t kGroupsOfSum = 256;

// Values by channel, repeated over a group.
struct Pattern {
  Pattern(const float* by_channel, int64_t block) {
    for (int64_t i = 0; i < kGroup; i += block) {
      for (int64_t c = 0; c < block; ++c) values[static_cast<size_t>(i + c)] = by_channel[c];
    }
  }
  HWY_INLINE FloatVector vector(int64_t index) const {
    return hn::LoadU(FloatTag(), values.data() + index * kLanes);
  }
  std::array<float, kGroup> values;
};

// Two sums by channel.
struct Sums {
  double* first;
  double* second;
};

// Calls accumulate(vector of the group, offset of its elements, first, second) to add to two
// vectors of sums, and accumulate_one(index in the group, offset, &first, &second) for what doesn't
// fill a group; brings the sums to the channels.
template <typename Accumulate, typename AccumulateOne>
void SumRow(int64_t size, int64_t block, const Sums& sums, const Accumulate& accumulate,
            const AccumulateOne& accumulate_one) {
  const FloatTag d;
  const int64_t whole = size / kGroup * kGroup;
  for (int64_t begin = 0; begin < whole; begin += kGroupsOfSum * kGroup) {
    const int64_t end = std::min(whole, begin + kGroupsOfSum * kGroup);
    FloatVector first[kVectors];
    FloatVector second[kVectors];
    for (int64_t k = 0; k < kVectors; ++k) first[k] = second[k] = hn::Zero(d);
    for (int64_t i = begin; i < end; i += kGroup) {
      for (int64_t k = 0; k < kVectors; ++k) accumulate(k, i + k * kLanes, first[k], second[k]);
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
  for (int64_t i = whole; i < size; i += block) {
    for (int64_t c = 0; c < block; ++c)
      accumulate_one(i - whole + c, i + c, &sums.first[c], &sums.second[c]);
  }
}

// Adds, for `rows` rows, the sums of x - pivot and of its square.
void RowMoments(const float* x, int64_t rows, int64_t row_stride, int64_t size, int64_t block,
                const float* pivot, double* sums, double* squares) {
  const FloatTag d;
  const Pattern pivots(pivot, block);
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = x + row * row_stride;
    SumRow(
        size, block, {sums, squares},
        [&](int64_t k, int64_t offset, FloatVector& sum, FloatVector& square) HWY_ATTR {
          const auto distance = hn::Sub(hn::LoadU(d, from + offset), pivots.vector(k));
          sum = hn::Add(sum, distance);
          square = hn::MulAdd(distance, distance, square);
        },
        [&](int64_t i, int64_t offset, double* sum, double* square) {
          const float distance = from[offset] - pivots.values[static_cast<size_t>(i)];
          *sum += distance;
          *square += static_cast<double>(distance) * distance;
        });
  }
}

// Adds, for `rows` rows, the sums of dy and of dy · (x - mean).
void RowGradientSums(const float* x, const float* dy, int64_t rows, int64_t row_stride,
                     int64_t size, int64_t block, const float* mean, double* sums,
                     double* products) {
  const FloatTag d;
  const Pattern means(mean, block);
  for (int64_t row = 0; row < rows; ++row) {
    const float* values = x + row * row_stride;
    const float* gradients = dy + row * row_stride;
    SumRow(
        size, block, {sums, products},
        [&](int64_t k, int64_t offset, FloatVector& sum, FloatVector& product) HWY_ATTR {
          const auto gradient = hn::LoadU(d, gradients + offset);
          sum = hn::Add(sum, gradient);
          product = hn::MulAdd(gradient, hn::Sub(hn::LoadU(d, values + offset), means.vector(k)),
                               product);
        },
        [&](int64_t i, int64_t offset, double* sum, double* product) {
          const float distance = values[offset] - means.values[static_cast<size_t>(i)];
          *sum += gradients[offset];
          *product += static_cast<double>(gradients[offset]) * distance;
        });
  }
}

void NormalizeRow(const float* x, int64_t size, int64_t block, const float* mean,
                  const float* slope, const float* shift, float* y) {
  const FloatTag d;
  const Pattern means(mean, block);
  const Pattern slopes(slope, block);
  const Pattern shifts(shift, block);
  const int64_t whole = size / kGroup * kGroup;
  for (int64_t i = 0; i < whole; i += kGroup) {
    for (int64_t k = 0; k < kVectors; ++k) {
      const auto distance = hn::Sub(hn::LoadU(d, x + i + k * kLanes), means.vector(k));
      hn::StoreU(hn::MulAdd(distance, slopes.vector(k), shifts.vector(k)), d, y + i + k * kLanes);
    }
  }
  for (int64_t i = whole; i < size; ++i) {
    const auto k = static_cast<size_t>(i - whole);
    y[i] = (x[i] - means.values[k]) * slopes.values[k] + shifts.values[k];
  }
}

void GradientRow(const float* x, const float* dy, int64_t size, int64_t block, const float* mean,
                 const float* slope, const float* offset, const float* factor, float* dx) {
  const FloatTag d;
  const Pattern means(mean, block);
  const Pattern slopes(slope, block);
  const Pattern offsets(offset, block);
  const Pattern factors(factor, block);
  const int64_t whole = size / kGroup * kGroup;
  for (int64_t i = 0; i < whole; i += kGroup) {
    for (int64_t k = 0; k < kVectors; ++k) {
      const int64_t at = i + k * kLanes;
      const auto distance = hn::Sub(hn::LoadU(d, x + at), means.vector(k));
      const auto centered = hn::Sub(hn::LoadU(d, dy + at), offsets.vector(k));
      const auto gradient = hn::NegMulAdd(distance, factors.vector(k), centered);
      hn::StoreU(hn::Mul(slopes.vector(k), gradient), d, dx + at);
    }
  }
  for (int64_t i = whole; i < size; ++i) {
    const auto k = static_cast<size_t>(i - whole);
    dx[i] = slopes.values[k] *
            (dy[i] - offsets.values[k] - (x[i] - means.values[k]) * factors.values[k]);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace skiff
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(RowMoments);
HWY_EXPORT(RowGradientSums);
HWY_EXPORT(NormalizeRow);
HWY_EXPORT(GradientRow);

namespace {

constexpr int64_t kMaxBlock = 16;

NormParts PartsOf(const NormGeometry& geometry) {
  const int64_t blocks = geometry.padded_channels() / geometry.block;
  return {.units = geometry.batch,
          .values_a_unit = geometry.pixels,
          .parts = std::min(geometry.batch, (NormParts::kEnoughItems + blocks - 1) / blocks),
          .blocks = blocks,
          .block = geometry.block,
          .channels = geometry.padded_channels()};
}

class VectorNormLoops final : public PartedNormLoops {
 public:
  explicit VectorNormLoops(const NormGeometry& geometry)
      : PartedNormLoops(PartsOf(geometry)),
        geometry_(geometry),
        blocks_(geometry.padded_channels() / geometry.block),
        row_size_(geometry.pixels * geometry.block),
        image_size_(blocks_ * row_size_) {}

  void Normalize(const float* x, const float* mean, const float* slope, const float* shift,
                 float* y) const override {
    ForEachRow([&](int64_t row, int64_t c) {
      HWY_DYNAMIC_DISPATCH(NormalizeRow)
      (x + row * row_size_, row_size_, geometry_.block, mean + c, slope + c, shift + c,
       y + row * row_size_);
    });
  }

  void Gradient(const float* x, const float* dy, const float* mean, const float* slope,
                const float* offset, const float* factor, float* dx) const override {
    ForEachRow([&](int64_t row, int64_t c) {
      HWY_DYNAMIC_DISPATCH(GradientRow)
      (x + row * row_size_, dy + row * row_size_, row_size_, geometry_.block, mean + c, slope + c,
       offset + c, factor + c, dx + row * row_size_);
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

  // Sums distances from a pivot, the mean of the part's first pixels: as those belong to the part,
  // its square is at most (pixels / pixels of the pivot) variances away from the mean, and nothing
  // of note cancels.
  void PartMoments(const float* x, const NormItem& item, double* means,
                   double* squares) const override {
    const float* first = x + FirstElement(item);
    const int64_t width = geometry_.block;
    const int64_t images = item.end - item.begin;
    std::array<float, kMaxBlock> pivot;
    FindPivot(first, std::min<int64_t>(geometry_.pixels, 256), width, width, pivot.data());
    std::fill_n(means, width, 0.0);
    std::fill_n(squares, width, 0.0);
    HWY_DYNAMIC_DISPATCH(RowMoments)
    (first, images, image_size_, row_size_, width, pivot.data(), means, squares);
    CenterMoments(pivot.data(), width, images * geometry_.pixels, means, squares);
  }

  void PartGradientSums(const float* x, const float* dy, const float* mean, const NormItem& item,
                        double* sums, double* products) const override {
    const int64_t first = FirstElement(item);
    HWY_DYNAMIC_DISPATCH(RowGradientSums)
    (x + first, dy + first, item.end - item.begin, image_size_, row_size_, geometry_.block,
     mean + item.block * geometry_.block, sums, products);
  }

  NormGeometry geometry_;
  int64_t blocks_;
  int64_t row_size_;
  int64_t image_size_;
};

}  // namespace

std::unique_ptr<NormLoops<float>> MakeVectorNormLoops(const NormGeometry& geometry) {
  return std::make_unique<VectorNormLoops>(geometry);
}

}  // namespace skiff
#endif
