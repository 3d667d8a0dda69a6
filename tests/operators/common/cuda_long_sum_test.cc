// How CUDA kernels cut long sums, on the host: no device is needed.
#include "operators/common/cuda/cuda_long_sum.h"

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

constexpr int64_t kMany = 1 << 20;

LongSumCut CutOfSmall(int64_t k, int64_t fitting = kMany) { return CutOfLongSum(3, 5, k, fitting); }
LongSumCut CutOf768(int64_t k) { return CutOfLongSum(768, 768, k, kMany); }

TEST(CutOfLongSum, MakesEqualPartsWhereItCan) {
  EXPECT_EQ(CutOfSmall(1024), (LongSumCut{.terms = 512, .count = 2}));
  EXPECT_EQ(CutOfSmall(1632), (LongSumCut{.terms = 544, .count = 3}));
  // Eight, where seven would be worth while.
  EXPECT_EQ(CutOf768(4096), (LongSumCut{.terms = 512, .count = 8}));
  EXPECT_EQ(CutOf768(8192), (LongSumCut{.terms = 1024, .count = 8}));
  EXPECT_EQ(CutOf768(16384), (LongSumCut{.terms = 2048, .count = 8}));
}

TEST(CutOfLongSum, LeavesFewTerms) {
  EXPECT_EQ(CutOfSmall(1056), (LongSumCut{.terms = 512, .count = 2, .rest = 32}));
  EXPECT_EQ(CutOfSmall(1031), (LongSumCut{.terms = 512, .count = 2, .rest = 7}));
  // Two equal parts would be too few.
  EXPECT_EQ(CutOf768(32 * 2 * 1021), (LongSumCut{.terms = 9312, .count = 7, .rest = 160}));
}

TEST(CutOfLongSum, IsNoneWithoutNeedOrMemory) {
  EXPECT_EQ(CutOfSmall(1023), (LongSumCut{.terms = 1023}));
  EXPECT_EQ(CutOfLongSum(4096, 4096, 4096, kMany), (LongSumCut{.terms = 4096}));
  EXPECT_EQ(CutOfSmall(0), (LongSumCut{.terms = 0}));
  EXPECT_EQ(CutOfSmall(4096, 1), (LongSumCut{.terms = 4096}));
  EXPECT_EQ(CutOfSmall(1031, 2), (LongSumCut{.terms = 1031}));  // with what is left, three parts
}

TEST(CutOfLongSum, HasPartsThatFitAndAreWorthWhile) {
  int cut_sums = 0;
  for (int64_t k = 1; k < 20000; k += 37) {
    for (const int64_t fitting : {2, 3, 7, 1000}) {
      for (const int64_t size : {5, 200, 768}) {
        const LongSumCut cut = CutOfLongSum(size, size, k, fitting);
        ASSERT_EQ(cut.terms * cut.count + cut.rest, k);
        if (cut.count == 1) continue;
        ++cut_sums;
        ASSERT_LE(cut.parts(), fitting) << k;
        ASSERT_GE(cut.terms, 512) << k;
        ASSERT_EQ(cut.terms % 32, 0) << k;
        ASSERT_LT(cut.rest, cut.terms) << k;
      }
    }
  }
  EXPECT_GT(cut_sums, 1000);
}

}  // namespace
}  // namespace skiff
