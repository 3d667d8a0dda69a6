#include "tools/benchmark/run_times.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "framework/base/error.h"

namespace skiff {
namespace {

TEST(PercentilesOf, TakesTheNearestRank) {
  const Percentiles eleven = PercentilesOf({10, 0, 9, 1, 8, 2, 7, 3, 6, 4, 5});
  EXPECT_EQ(eleven.p10, 1);
  EXPECT_EQ(eleven.median, 5);
  EXPECT_EQ(eleven.p90, 9);
  const Percentiles ten = PercentilesOf({10, 9, 8, 7, 6, 5, 4, 3, 2, 1});
  EXPECT_EQ(ten.p10, 1);
  EXPECT_EQ(ten.median, 5);
  EXPECT_EQ(ten.p90, 9);
  const Percentiles two = PercentilesOf({4, 3});
  EXPECT_EQ(two.p10, 3);
  EXPECT_EQ(two.median, 3);
  EXPECT_EQ(two.p90, 4);
  EXPECT_EQ(PercentilesOf({7}).median, 7);
}

TEST(PercentilesOf, RefusesNoValues) { EXPECT_THROW(PercentilesOf({}), Error); }

TEST(SecondsOf, CoversTheRun) {
  constexpr std::chrono::milliseconds kPause(5);
  EXPECT_GE(SecondsOf([&] { std::this_thread::sleep_for(kPause); }), 0.005);
}

}  // namespace
}  // namespace skiff
