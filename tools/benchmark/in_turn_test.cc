#include "tools/benchmark/in_turn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "framework/base/error.h"

namespace skiff {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::Lt;
using ::testing::SizeIs;

TEST(TimeInTurn, TakesTurns) {
  std::vector<int> order;
  const auto work = [&order](int number) {
    return [&order, number] {
      if (order.empty() || order.back() != number) order.push_back(number);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    };
  };
  const std::vector<TurnSeconds> times = TimeInTurn({work(0), work(1)}, {.seconds = 0, .turns = 3});
  EXPECT_THAT(order, ElementsAre(0, 1, 0, 1, 0, 1));
  ASSERT_THAT(times, SizeIs(2));
  EXPECT_THAT(times, Each(SizeIs(3)));
  EXPECT_THAT(times[0], Each(Ge(0.002)));
}

TEST(TimeInTurn, RunsAsLongAsItShall) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<TurnSeconds> times = TimeInTurn({[] {}}, {.seconds = 0.02, .turns = 2});
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(20));
  // Of one run, however many are timed at a time.
  EXPECT_THAT(times[0], Each(Lt(1e-3)));
}

TEST(MedianRatio, ComparesTimesOfTheSameTurn) {
  EXPECT_DOUBLE_EQ(MedianRatio({2, 20, 300}, {1, 5, 100}), 3);
  EXPECT_THROW(MedianRatio({1, 2}, {1}), Error);
  EXPECT_THROW(MedianRatio({}, {}), Error);
}

}  // namespace
}  // namespace skiff
