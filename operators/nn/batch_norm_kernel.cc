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

// A reduction is cut into items: a block of channels in a part of the batch. Items are reduced
// independently and combined in order, so results don't depend on the number of threads.
class VectorNormLoops final : public NormLoops<float> {
 public:
  explicit VectorNormLoops(const NormGeometry& geometry)
      : geometry_(geometry),
        blocks_(geometry.padded_channels() / geometry.block),
        row_size_(geometry.pixels * geometry.block),
        image_size_(blocks_ * row_size_),
        parts_(std::min(geometry.batch, (kEnoughItems + blocks_ - 1) / blocks_)) {}

  int64_t scratch_bytes() const override {
    return 2 * parts_ * geometry_.padded_channels() * static_cast<int64_t>(sizeof(double));
  }

  void Moments(const float* x, void* scratch, double* mean, double* squares) const override {
    auto* part_means = static_cast<double*>(scratch);
    double* part_squares = part_means + parts_ * geometry_.padded_channels();
    ForEachItem([&](int64_t part, int64_t block) {
      const int64_t at = part * geometry_.padded_channels() + block * geometry_.block;
      PartMoments(x, part, block, part_means + at, part_squares + at);
    });
    for (int64_t c = 0; c < geometry_.padded_channels(); ++c)
      CombineMoments(c, part_means, part_squares, mean, squares);
  }

  void Normalize(const float* x, const float* mean, const float* slope, const float* shift,
                 float* y) const override {
    ForEachRow([&](int64_t row, int64_t c) {
      HWY_DYNAMIC_DISPATCH(NormalizeRow)
      (x + row * row_size_, row_size_, geometry_.block, mean + c, slope + c, shift + c,
       y + row * row_size_);
    });
  }

  void GradientSums(const float* x, const float* dy, const float* mean, void* scratch, double* sums,
                    double* products) const override {
    const int64_t channels = geometry_.padded_channels();
    auto* part_sums = static_cast<double*>(scratch);
    double* part_products = part_sums + parts_ * channels;
    ForEachItem([&](int64_t part, int64_t block) {
      const int64_t at = part * channels + block * geometry_.block;
      std::fill_n(part_sums + at, geometry_.block, 0.0);
      std::fill_n(part_products + at, geometry_.block, 0.0);
      const int64_t first = PartBegin(part) * image_size_ + block * row_size_;
      HWY_DYNAMIC_DISPATCH(RowGradientSums)
      (x + first, dy + first, PartBegin(part + 1) - PartBegin(part), image_size_, row_size_,
       geometry_.block, mean + block * geometry_.block, part_sums + at, part_products + at);
    });
    for (int64_t c = 0; c < channels; ++c) {
      sums[c] = products[c] = 0;
      for (int64_t part = 0; part < parts_; ++part) {
        sums[c] += part_sums[part * channels + c];
        products[c] += part_products[part * channels + c];
      }
    }
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
  // As many items as any machine has threads, if the batch allows it.
  static constexpr int64_t kEnoughItems = 64;

  // The first image of a part.
  int64_t PartBegin(int64_t part) const { return geometry_.batch * part / parts_; }

  template <typename Visit>
  void ForEachItem(const Visit& visit) const {
    const int64_t images = geometry_.batch / parts_;
    ParallelFor(parts_ * blocks_, GrainOf(images * row_size_), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) visit(i / blocks_, i % blocks_);
    });
  }

  // Calls visit(row, first channel of the row).
  template <typename Visit>
  void ForEachRow(const Visit& visit) const {
    ParallelFor(geometry_.batch * blocks_, GrainOf(row_size_), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) visit(row, row % blocks_ * geometry_.block);
    });
  }

  // Sums distances from a pivot, the mean of the part's first pixels: as those belong to the part,
  // its square is at most (pixels / pixels of the pivot) variances away from the mean, and nothing
  // of note cancels.
  void PartMoments(const float* x, int64_t part, int64_t block, double* means,
                   double* squares) const {
    const float* first = x + PartBegin(part) * image_size_ + block * row_size_;
    const int64_t width = geometry_.block;
    const int64_t images = PartBegin(part + 1) - PartBegin(part);
    std::array<float, kMaxBlock> pivot;
    const int64_t pixels = std::min<int64_t>(geometry_.pixels, 256);
    for (int64_t c = 0; c < width; ++c) {
      double sum = 0;
      for (int64_t i = 0; i < pixels; ++i) sum += first[i * width + c];
      pivot[static_cast<size_t>(c)] = static_cast<float>(sum / static_cast<double>(pixels));
      means[c] = squares[c] = 0;
    }
    HWY_DYNAMIC_DISPATCH(RowMoments)
    (first, images, image_size_, row_size_, width, pivot.data(), means, squares);
    const auto count = static_cast<double>(images * geometry_.pixels);
    for (int64_t c = 0; c < width; ++c) {
      const double shift = means[c] / count;
      squares[c] = std::max(squares[c] - means[c] * shift, 0.0);
      means[c] = pivot[static_cast<size_t>(c)] + shift;
    }
  }

  // Chan, Golub & LeVeque 1979: moments of a union.
  void CombineMoments(int64_t c, const double* part_means, const double* part_squares, double* mean,
                      double* squares) const {
    double count = 0;
    mean[c] = squares[c] = 0;
    for (int64_t part = 0; part < parts_; ++part) {
      const int64_t at = part * geometry_.padded_channels() + c;
      const auto added =
          static_cast<double>((PartBegin(part + 1) - PartBegin(part)) * geometry_.pixels);
      const double distance = part_means[at] - mean[c];
      squares[c] += part_squares[at] + distance * distance * count * added / (count + added);
      count += added;
      mean[c] += distance * added / count;
    }
  }

  NormGeometry geometry_;
  int64_t blocks_;
  int64_t row_size_;
  int64_t image_size_;
  int64_t parts_;
};

}  // namespace

std::unique_ptr<NormLoops<float>> MakeVectorNormLoops(const NormGeometry& geometry) {
  return std::make_unique<VectorNormLoops>(geometry);
}

}  // namespace skiff
#endif
