#include "framework/comm/polling.h"

#include <gtest/gtest.h>

#include <limits>

#include "framework/base/steady_seconds.h"

namespace skiff {
namespace {

TEST(Polling, EndsAtItsLimit) {
  const double start = SteadySeconds();
  // Long enough to come to the part that sleeps.
  Polling polling(0.05);
  while (polling.Wait()) {
  }
  EXPECT_GE(SteadySeconds() - start, 0.05);
  EXPECT_FALSE(polling.Wait());
}

TEST(Polling, BeginsAnewAfterProgress) {
  Polling polling(0.01);
  while (polling.Wait()) {
  }
  const double restart = SteadySeconds();
  polling.Restart();
  while (polling.Wait()) {
  }
  EXPECT_GE(SteadySeconds() - restart, 0.01);
}

TEST(Polling, MayHaveNoLimit) {
  Polling polling(std::numeric_limits<double>::infinity());
  for (int k = 0; k < 10; ++k) EXPECT_TRUE(polling.Wait());
}

}  // namespace
}  // namespace skiff
