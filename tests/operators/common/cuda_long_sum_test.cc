// How CUDA kernels cut long sums, on the host: no device is needed.
#include "operators/common/cuda_long_sum.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace skiff {
namespace {

TEST(WorthwhileSumParts, AreMoreTheFewerElementsThereAre) {
  EXPECT_EQ(WorthwhileSumParts(3, 5, 1 << 20), 256);
  EXPECT_EQ(WorthwhileSumParts(768, 768, 1 << 20), 7);
  EXPECT_EQ(WorthwhileSumParts(4096, 4096, 1 << 20), 1);
}

TEST(WorthwhileSumParts, HaveTermsEnough) {
  EXPECT_EQ(WorthwhileSumParts(3, 5, 1023), 1);
  EXPECT_EQ(WorthwhileSumParts(3, 5, 1024), 2);
  EXPECT_EQ(WorthwhileSumParts(3, 5, 0), 1);
  EXPECT_EQ(WorthwhileSumParts(0, 5, 1024), 1);
}

TEST(NearestDivisor, MayBeLowerOrHigher) {
  EXPECT_EQ(NearestDivisor(32, 16, 100), 16);
  EXPECT_EQ(NearestDivisor(32, 20, 100), 16);
  EXPECT_EQ(NearestDivisor(32, 25, 100), 32);
  EXPECT_EQ(NearestDivisor(36, 8, 100), 9);
  EXPECT_EQ(NearestDivisor(16, 1, 100), 1);
}

TEST(NearestDivisor, OfAPrimeIsOneOrItself) {
  EXPECT_EQ(NearestDivisor(31, 5, 100), 1);
  EXPECT_EQ(NearestDivisor(31, 6, 100), 31);
}

TEST(NearestDivisor, KeepsTheLimit) {
  EXPECT_EQ(NearestDivisor(31, 6, 30), 1);
  EXPECT_EQ(NearestDivisor(32, 32, 31), 16);
  EXPECT_EQ(NearestDivisor(32, 196, 100), 32);
  EXPECT_EQ(NearestDivisor(32, 4, 0), 1);
}

}  // namespace
}  // namespace skiff
