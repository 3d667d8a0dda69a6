#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/operators/common/simd_math_test.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "operators/common/cpu/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// `count` is a multiple of the lanes of any instruction set.
void QuickTanhOfEach(float* x, size_t count) {
  const hn::ScalableTag<float> d;
  for (size_t i = 0; i < count; i += hn::Lanes(d))
    hn::StoreU(QuickTanh(d, hn::LoadU(d, x + i)), d, x + i);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace skiff
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(QuickTanhOfEach);

std::vector<float> QuickTanhOf(std::vector<float> x) {
  const size_t count = x.size();
  x.resize((count + 15) / 16 * 16);
  HWY_DYNAMIC_DISPATCH(QuickTanhOfEach)(x.data(), x.size());
  x.resize(count);
  return x;
}

TEST(QuickTanh, IsWithinSixUnitsInTheLastPlace) {
  std::vector<float> x;
  for (float number = 1e-30f; number < 20; number *= 1.0001f) {
    x.push_back(number);
    x.push_back(-number);
  }
  const std::vector<float> found = QuickTanhOf(x);
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = std::tanh(double{x[i]});
    const float size = std::fabs(static_cast<float>(expected));
    const double unit = double{std::nextafter(size, 2.0f)} - double{size};
    ASSERT_NEAR(double{found[i]}, expected, 6 * unit) << "x = " << x[i];
    ASSERT_LE(std::fabs(found[i]), 1.0f) << "x = " << x[i];
  }
}

TEST(QuickTanh, OfSpecialNumbers) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> found =
      QuickTanhOf({0.0f, -0.0f, kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_EQ(found[0], 0.0f);
  EXPECT_EQ(found[1], 0.0f);
  EXPECT_TRUE(std::signbit(found[1]));
  EXPECT_EQ(found[2], 1.0f);
  EXPECT_EQ(found[3], -1.0f);
  EXPECT_TRUE(std::isnan(found[4]));
}

}  // namespace
}  // namespace skiff
#endif  // HWY_ONCE
