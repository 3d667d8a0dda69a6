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
using ::testing::SizeIs;

TEST(TimeInTurn, TakesTurns) {
  std::vector<int> order;
  const auto work = [&order](int number) {
    return [&order, number] {
      if (order.empty() || order.back() != number) order.push_back(number);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    };
  };
  const std::vector<TurnTimes> times = TimeInTurn({work(0), work(1)}, {.seconds = 0, .turns = 3});
  EXPECT_THAT(order, ElementsAre(0, 1, 0, 1, 0, 1));
  ASSERT_THAT(times, SizeIs(2));
  for (const TurnTimes& of_work : times) {
    EXPECT_THAT(of_work.medians, SizeIs(3));
    EXPECT_THAT(of_work.medians, Each(Ge(of_work.fastest)));
    EXPECT_GE(of_work.fastest, 0.002);
  }
}

TEST(TimeInTurn, RunsAsLongAsItShall) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<TurnTimes> times = TimeInTurn({[] {}}, {.seconds = 0.02, .turns = 2});
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(20));
  // Of one run, however many are timed at a time.
  EXPECT_LT(times[0].fastest, 1e-3);
}

TEST(TimeInTurn, RefusesToTakeNoTurn) {
  EXPECT_THROW(TimeInTurn({[] {}}, {.turns = 0}), Error);
}

TEST(MedianOf, TakesThatOfTheTurns) { EXPECT_EQ(MedianOf({.medians = {3, 1, 2}}), 2); }

TEST(MedianRatio, ComparesTimesOfTheSameTurn) {
  EXPECT_DOUBLE_EQ(MedianRatio({.medians = {2, 20, 300}}, {.medians = {1, 5, 100}}), 3);
  EXPECT_THROW(MedianRatio({.medians = {1, 2}}, {.medians = {1}}), Error);
  EXPECT_THROW(MedianRatio({}, {}), Error);
}

}  // namespace
}  // namespace skiff
