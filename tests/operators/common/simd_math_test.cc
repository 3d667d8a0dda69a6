#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "hwy/highway.h"
#include "operators/common/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

std::vector<float> QuickTanhOf(std::vector<float> x) {
  const hn::CappedTag<float, 1> d;
  for (float& number : x) hn::StoreU(QuickTanh(d, hn::LoadU(d, &number)), d, &number);
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
      QuickTanhOf({0.0f, kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_EQ(found[0], 0.0f);
  EXPECT_EQ(found[1], 1.0f);
  EXPECT_EQ(found[2], -1.0f);
  EXPECT_TRUE(std::isnan(found[3]));
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
