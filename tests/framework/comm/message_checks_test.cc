#include "framework/comm/message_checks.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace skiff {
namespace {

TEST(MessageChecks, NameRanks) {
  std::vector<int32_t> ranks = {7};
  EXPECT_EQ(RanksText(ranks), "rank 7");
  ranks = {1, 3};
  EXPECT_EQ(RanksText(ranks), "ranks 1, 3");
  ranks.resize(1000);
  std::iota(ranks.begin(), ranks.end(), 1);
  EXPECT_EQ(RanksText(ranks),
            "ranks 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, … (1000 ranks)");
}

TEST(MessageChecks, NameTheHostThatHasWaited) {
  const std::vector<int32_t> ranks = {2};
  EXPECT_EQ(TimeLimitText({.rank = 1, .size = 3, .host = "a"}, 600, ranks),
            "rank 1 (host a) has waited 600 s for rank 2");
}

}  // namespace
}  // namespace skiff
