// The passes of batch normalization over images of half have the bits of those over float32,
// rounded, however images are stored and however long their rows are.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/str_cat.h"
#include "operators/nn/normalization/batch_norm_passes.h"
#include "tests/harness/instruction_set.h"

namespace skiff {
namespace {

// Images of half, and the same numbers as float32.
template <typename T>
struct Images {
  // `phase` tells one from the other.
  Images(int64_t count, double phase) : half(static_cast<size_t>(count)), wide(half.size()) {
    for (size_t i = 0; i < half.size(); ++i) {
      half[i] = T(static_cast<float>(3 * std::sin(static_cast<double>(i) + phase)));
      wide[i] = static_cast<float>(half[i]);
    }
  }

  void ExpectRounded(const std::string& what) const {
    int wrong = 0;
    for (size_t i = 0; i < half.size(); ++i) wrong += half[i].bits != T(wide[i]).bits ? 1 : 0;
    EXPECT_EQ(wrong, 0) << what;
  }

  std::vector<T> half;
  std::vector<float> wide;
};

// The results of a pass by channel.
struct Sums {
  explicit Sums(const NormGeometry& geometry)
      : first(static_cast<size_t>(geometry.padded_channels())), second(first.size()) {}
  void ExpectSame(const Sums& other, const std::string& what) const {
    EXPECT_EQ(first, other.first) << what;
    EXPECT_EQ(second, other.second) << what;
  }

  std::vector<double> first;
  std::vector<double> second;
};

template <typename T>
class LoopsCheck {
 public:
  LoopsCheck(const NormGeometry& geometry, MakeNormLoops<T> half, MakeNormLoops<float> wide)
      : geometry_(geometry),
        half_(half(geometry)),
        wide_(wide(geometry)),
        scratch_(static_cast<size_t>(wide_->scratch_bytes())),
        count_(geometry.batch * geometry.padded_channels() * geometry.pixels),
        x_(count_, 1),
        dy_(count_, 2),
        other_(count_, 3) {
    const auto channels = static_cast<size_t>(geometry.padded_channels());
    for (size_t c = 0; c < 5 * channels; ++c) lines_.push_back(0.25f + 0.125f * (c % 7));
  }

  void ExpectSameBits() {
    CheckMoments();
    for (const bool adds : {false, true}) {
      for (const bool rectifies : {false, true}) CheckNormalize(adds, rectifies);
    }
    for (const NormMask mask : {NormMask::kNone, NormMask::kInput, NormMask::kOutput}) {
      CheckGradientSums(mask);
      if (mask != NormMask::kOutput) CheckGradient(mask);
    }
  }

 private:
  const float* line(int64_t i) const { return lines_.data() + i * geometry_.padded_channels(); }
  NormLines<float> lines() const { return {line(0), line(1), line(2)}; }

  void CheckMoments() {
    Sums half(geometry_);
    Sums wide(geometry_);
    half_->Moments(x_.half.data(), scratch_.data(), half.first.data(), half.second.data());
    wide_->Moments(x_.wide.data(), scratch_.data(), wide.first.data(), wide.second.data());
    half.ExpectSame(wide, "moments");
  }

  void CheckNormalize(bool adds, bool rectifies) {
    Images<T> y(count_, 4);
    half_->Normalize(x_.half.data(), adds ? other_.half.data() : nullptr, lines(), rectifies,
                     y.half.data());
    wide_->Normalize(x_.wide.data(), adds ? other_.wide.data() : nullptr, lines(), rectifies,
                     y.wide.data());
    y.ExpectRounded(StrCat("normalized, adds ", adds, ", rectifies ", rectifies));
  }

  void CheckGradientSums(NormMask mask) {
    Sums half(geometry_);
    Sums wide(geometry_);
    Images<T> masked = dy_;
    half_->GradientSums(x_.half.data(), {masked.half.data(), mask, other_.half.data()}, lines(),
                        scratch_.data(), half.first.data(), half.second.data(), masked.half.data());
    wide_->GradientSums(x_.wide.data(), {masked.wide.data(), mask, other_.wide.data()}, lines(),
                        scratch_.data(), wide.first.data(), wide.second.data(), masked.wide.data());
    half.ExpectSame(wide, StrCat("sums of gradients, mask ", static_cast<int>(mask)));
    masked.ExpectRounded(StrCat("masked gradient, mask ", static_cast<int>(mask)));
  }

  void CheckGradient(NormMask mask) {
    Images<T> dx(count_, 5);
    half_->Gradient(x_.half.data(), {dy_.half.data(), mask, nullptr}, lines(), line(3), line(4),
                    dx.half.data());
    wide_->Gradient(x_.wide.data(), {dy_.wide.data(), mask, nullptr}, lines(), line(3), line(4),
                    dx.wide.data());
    dx.ExpectRounded(StrCat("gradient, mask ", static_cast<int>(mask)));
  }

  NormGeometry geometry_;
  std::unique_ptr<NormLoops<T>> half_;
  std::unique_ptr<NormLoops<float>> wide_;
  std::vector<char> scratch_;
  int64_t count_;
  Images<T> x_;
  Images<T> dy_;
  Images<T> other_;
  std::vector<float> lines_;  // five arrays by channel
};

template <typename T>
void ExpectBitsOfFloat32(const NormGeometry& geometry) {
  SCOPED_TRACE(StrCat(kDTypeOf<T>, ", ", geometry.batch, " x ", geometry.channels, " x ",
                      geometry.pixels, ", blocks of ", geometry.block));
  LoopsCheck<T>(geometry, MakeFastNormLoops<T>, MakeFastNormLoops<float>).ExpectSameBits();
  if (geometry.block > 1) return;
  LoopsCheck<T>(geometry, MakePlainNormLoops<T>, MakePlainNormLoops<float>).ExpectSameBits();
}

TEST(NormLoops, OfHalfHaveTheBitsOfFloat32) {
  const ChannelOrder first = ChannelOrder::kFirst;
  const ChannelOrder last = ChannelOrder::kLast;
  for (const int64_t set : harness::InstructionSets()) {
    SCOPED_TRACE(harness::InstructionSetName(set));
    const harness::InstructionSetLimit limit(set);
    for (const NormGeometry& geometry : {
             // Rows of pixels and of blocks, with whole groups of vectors and a rest.
             NormGeometry{2, 3, 2125, first, 1},
             NormGeometry{2, 20, 133, first, 16},
             NormGeometry{2, 9, 301, first, 8},
             // Rows of channels: many channels, and few.
             NormGeometry{3, 1101, 2, last, 1},
             NormGeometry{300, 83, 1, first, 1},
             NormGeometry{700, 5, 1, first, 1},
         }) {
      ExpectBitsOfFloat32<BFloat16>(geometry);
      ExpectBitsOfFloat32<Float16>(geometry);
    }
  }
}

}  // namespace
}  // namespace skiff
