#include "framework/tensor/philox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace skiff {
namespace {

using ::testing::ElementsAre;

// Known answers of Philox4x32-10, from kat_vectors of the Random123 distribution.
TEST(Philox, GivesTheKnownAnswerForZeros) {
  EXPECT_THAT(Philox({.seed = 0, .op_id = 0, .step = 0}).At(0),
              ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
}

TEST(Philox, GivesTheKnownAnswerForOnes) {
  const RandomKey ones{.seed = ~uint64_t{0}, .op_id = 0xffffffff, .step = 0xffffffff};
  EXPECT_THAT(Philox(ones).At(~uint64_t{0}),
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
}

TEST(Philox, GivesTheKnownAnswerForDigitsOfPi) {
  const RandomKey key{.seed = 0x299f31d0a4093822, .op_id = 0x13198a2e, .step = 0x03707344};
  EXPECT_THAT(Philox(key).At(0x85a308d3243f6a88),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(Philox, DependsOnEveryPartOfTheKey) {
  std::set<Philox::Block> blocks;
  for (const RandomKey& key : {RandomKey{}, RandomKey{.seed = 1}, RandomKey{.seed = 1ULL << 32},
                               RandomKey{.op_id = 1}, RandomKey{.step = 1}}) {
    blocks.insert(Philox(key).At(0));
    blocks.insert(Philox(key).At(1));
  }
  EXPECT_EQ(blocks.size(), 10U);
}

TEST(Philox, UnitNumbersStayBelowOne) {
  EXPECT_EQ(UnitFloat(0), 0.0f);
  EXPECT_LT(UnitFloat(0xffffffff), 1.0f);
  EXPECT_EQ(UnitDouble(0, 0), 0.0);
  EXPECT_LT(UnitDouble(0xffffffff, 0xffffffff), 1.0);
}

TEST(Philox, NormalNumbersHaveTheirMoments) {
  const Philox philox({.seed = 3});
  constexpr int kPairs = 20000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kPairs; ++i) {
    for (const double value : NormalPair(philox.At(static_cast<uint64_t>(i)))) {
      ASSERT_TRUE(std::isfinite(value));
      sum += value;
      squares += value * value;
    }
  }
  // Standard errors: 0.005 of the mean, 0.007 of the variance.
  EXPECT_NEAR(sum / (2 * kPairs), 0.0, 0.025);
  EXPECT_NEAR(squares / (2 * kPairs), 1.0, 0.035);
  for (const double value : NormalPair({0xffffffff, 0xffffffff, 0, 0})) {
    EXPECT_TRUE(std::isfinite(value));
  }
}

}  // namespace
}  // namespace skiff
