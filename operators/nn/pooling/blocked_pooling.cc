// Pooling of channel-blocked images. A vector holds channels of one pixel, so all lanes share one
// window, whose borders cost no masks, and a load is contiguous whatever the stride. A block of 16
// channels takes several vectors where the instruction set has shorter ones.
#include <algorithm>
#include <cstdint>

#include "operators/nn/pooling/pooling.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/nn/pooling/blocked_pooling.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "operators/common/cpu/half_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// Calls visit(row, column, offset of the output pixel) for every output pixel.
template <int kBlock, typename Visit>
void ForEachOutput(const Pooling& pooling, const Visit& visit) {
  int64_t offset = 0;
  for (const WindowSpan& row : pooling.rows) {
    for (const WindowSpan& column : pooling.columns) {
      visit(row, column, offset);
      offset += kBlock;
    }
  }
}

template <int kBlock, typename T>
void MaxPlane(const Pooling& pooling, const T* input, T* output) {
  const hn::CappedTag<float, kBlock> d;
  const int64_t width = pooling.input.size[1];
  ForEachOutput<kBlock>(
      pooling, [&](const WindowSpan& row, const WindowSpan& column, int64_t offset) HWY_ATTR {
        for (size_t lane = 0; lane < kBlock; lane += hn::Lanes(d)) {
          auto best = LoadWide(d, input + (row.begin * width + column.begin) * kBlock + lane);
          for (int64_t y = row.begin; y < row.end; ++y) {
            for (int64_t x = column.begin; x < column.end; ++x) {
              const auto value = LoadWide(d, input + (y * width + x) * kBlock + lane);
              // MaxOrNan. Whether hn::Max returns NaN depends on the instruction set.
              best = hn::IfThenElse(hn::Or(hn::Gt(best, value), hn::IsNaN(best)), best, value);
            }
          }
          StoreRounded(best, d, output + offset + lane);
        }
      });
}

template <int kBlock, typename T>
void AveragePlane(const Pooling& pooling, const T* input, T* output) {
  const hn::CappedTag<float, kBlock> d;
  const int64_t width = pooling.input.size[1];
  ForEachOutput<kBlock>(
      pooling, [&](const WindowSpan& row, const WindowSpan& column, int64_t offset) HWY_ATTR {
        const auto divisor = hn::Set(d, static_cast<float>(pooling.Divisor(row, column)));
        for (size_t lane = 0; lane < kBlock; lane += hn::Lanes(d)) {
          auto sum = hn::Zero(d);
          for (int64_t y = row.begin; y < row.end; ++y) {
            // Each row is summed first, for accuracy: a global average adds thousands of pixels.
            auto row_sum = hn::Zero(d);
            for (int64_t x = column.begin; x < column.end; ++x)
              row_sum = hn::Add(row_sum, LoadWide(d, input + (y * width + x) * kBlock + lane));
            sum = hn::Add(sum, row_sum);
          }
          StoreRounded(hn::Div(sum, divisor), d, output + offset + lane);
        }
      });
}

template <int kBlock, typename T>
void MaxGradPlane(const Pooling& pooling, const T* input, const T* output, const T* output_gradient,
                  float* input_gradient) {
  const hn::CappedTag<float, kBlock> d;
  const int64_t width = pooling.input.size[1];
  ForEachOutput<kBlock>(
      pooling, [&](const WindowSpan& row, const WindowSpan& column, int64_t offset) HWY_ATTR {
        for (size_t lane = 0; lane < kBlock; lane += hn::Lanes(d)) {
          const auto best = LoadWide(d, output + offset + lane);
          const auto gradient = LoadWide(d, output_gradient + offset + lane);
          // The lanes whose maximum hasn't been found yet. Each lane has its own, and only the
          // first of equal pixels takes the gradient.
          auto pending = hn::Eq(hn::Zero(d), hn::Zero(d));
          for (int64_t y = row.begin; y < row.end; ++y) {
            for (int64_t x = column.begin; x < column.end; ++x) {
              const int64_t pixel = (y * width + x) * kBlock + static_cast<int64_t>(lane);
              const auto value = LoadWide(d, input + pixel);
              const auto is_maximum = hn::Or(hn::Eq(value, best), hn::IsNaN(value));
              const auto hit = hn::And(pending, is_maximum);
              // Adds instead of writing, since windows may overlap.
              const auto added =
                  hn::Add(hn::LoadU(d, input_gradient + pixel), hn::IfThenElseZero(hit, gradient));
              hn::StoreU(added, d, input_gradient + pixel);
              pending = hn::AndNot(hit, pending);
            }
          }
        }
      });
}

template <int kBlock, typename T>
void AverageGradPlane(const Pooling& pooling, const T* output_gradient, float* input_gradient) {
  const hn::CappedTag<float, kBlock> d;
  const int64_t width = pooling.input.size[1];
  ForEachOutput<kBlock>(
      pooling, [&](const WindowSpan& row, const WindowSpan& column, int64_t offset) HWY_ATTR {
        const auto divisor = hn::Set(d, static_cast<float>(pooling.Divisor(row, column)));
        for (size_t lane = 0; lane < kBlock; lane += hn::Lanes(d)) {
          const auto share = hn::Div(LoadWide(d, output_gradient + offset + lane), divisor);
          for (int64_t y = row.begin; y < row.end; ++y) {
            for (int64_t x = column.begin; x < column.end; ++x) {
              float* pixel = input_gradient + (y * width + x) * kBlock + lane;
              hn::StoreU(hn::Add(hn::LoadU(d, pixel), share), d, pixel);
            }
          }
        }
      });
}

template <int kBlock, typename T>
void Forward(const Pooling& pooling, const T* input, T* output) {
  if (pooling.is_max) {
    MaxPlane<kBlock>(pooling, input, output);
  } else {
    AveragePlane<kBlock>(pooling, input, output);
  }
}

template <int kBlock, typename T>
void Backward(const Pooling& pooling, const T* input, const T* output, const T* output_gradient,
              float* input_gradient) {
  std::fill_n(input_gradient, pooling.input.size[0] * pooling.input.size[1] * kBlock, 0.0f);
  if (pooling.is_max) {
    MaxGradPlane<kBlock>(pooling, input, output, output_gradient, input_gradient);
  } else {
    AverageGradPlane<kBlock>(pooling, output_gradient, input_gradient);
  }
}

template <typename T>
void PoolForward(const Pooling& pooling, int64_t block, const T* input, T* output) {
  block == 8 ? Forward<8>(pooling, input, output) : Forward<16>(pooling, input, output);
}

template <typename T>
void PoolBackward(const Pooling& pooling, int64_t block, const T* input, const T* output,
                  const T* output_gradient, float* input_gradient) {
  block == 8 ? Backward<8>(pooling, input, output, output_gradient, input_gradient)
             : Backward<16>(pooling, input, output, output_gradient, input_gradient);
}

FloatLoops<BlockedPoolingLoops> Loops() {
  return {{PoolForward<float>, PoolBackward<float>},
          {PoolForward<Float16>, PoolBackward<Float16>},
          {PoolForward<BFloat16>, PoolBackward<BFloat16>}};
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(Loops);

FloatLoops<BlockedPoolingLoops> BlockedPooling() { return HWY_DYNAMIC_DISPATCH(Loops)(); }

}  // namespace skiff
#endif
