#include "framework/comm/message_checks.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace skiff {
namespace {

TEST(MessageChecks, NameTheRanksThatHaventCome) {
  const World world = {.rank = 1, .size = 2000, .host = "a"};
  EXPECT_EQ(TimeLimitText(world, 600, {7}), "rank 1 (host a) has waited 600 s for rank 7");
  EXPECT_EQ(TimeLimitText(world, 0.5, {3, 0, 3}),
            "rank 1 (host a) has waited 0.5 s for ranks 0, 3");
  EXPECT_EQ(TimeLimitText(world, 600, {}), "rank 1 (host a) has waited 600 s for other ranks");
  std::vector<int32_t> many(1000);
  std::iota(many.begin(), many.end(), 2);
  EXPECT_EQ(
      TimeLimitText(world, 600, many),
      "rank 1 (host a) has waited 600 s for ranks 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, "
      "15, 16, 17, … (1000 ranks)");
}

TEST(MessageChecks, CopyTheMessageToTheRankItself) {
  const int32_t sent = 5;
  int32_t received = 0;
  const OutMessage out[] = {{.to = 0}, {.to = 1, .data = &sent, .bytes = 4}};
  const InMessage in[] = {{.from = 1, .data = &received, .bytes = 4}};
  CopyOwnMessage({.rank = 1, .size = 2}, out, in);
  EXPECT_EQ(received, 5);
  CopyOwnMessage({.rank = 0, .size = 2}, {}, {});
}

}  // namespace
}  // namespace skiff
