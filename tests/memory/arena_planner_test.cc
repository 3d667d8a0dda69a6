#include "memory/arena_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "framework/base/error.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Independent of the planner: walks the instants.
int64_t MostBytesLiveAtOnce(const std::vector<ArenaBuffer>& buffers) {
  int32_t last = 0;
  for (const ArenaBuffer& buffer : buffers) last = std::max(last, buffer.last_use);
  int64_t most = 0;
  for (int32_t instant = 0; instant <= last; ++instant) {
    int64_t live = 0;
    for (const ArenaBuffer& buffer : buffers) {
      if (buffer.first_use <= instant && instant <= buffer.last_use) live += buffer.bytes;
    }
    most = std::max(most, live);
  }
  return most;
}

void ExpectValid(const std::vector<ArenaBuffer>& buffers, const ArenaPlan& plan) {
  ASSERT_EQ(plan.offsets.size(), buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    const ArenaBuffer& a = buffers[i];
    EXPECT_GE(plan.offsets[i], 0);
    EXPECT_EQ(plan.offsets[i] % a.alignment, 0);
    EXPECT_LE(plan.offsets[i] + a.bytes, plan.planned_bytes);
    for (size_t j = 0; j < i; ++j) {
      const ArenaBuffer& b = buffers[j];
      const bool meet = a.first_use <= b.last_use && b.first_use <= a.last_use;
      const bool overlap = plan.offsets[i] < plan.offsets[j] + b.bytes &&
                           plan.offsets[j] < plan.offsets[i] + a.bytes;
      EXPECT_FALSE(meet && overlap && a.bytes > 0 && b.bytes > 0)
          << "buffers " << i << " and " << j << " overlap";
    }
  }
}

std::vector<ArenaBuffer> RandomBuffers(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&random](int32_t limit) {
    return static_cast<int32_t>(random() % static_cast<uint32_t>(limit));
  };
  std::vector<ArenaBuffer> buffers(static_cast<size_t>(1 + below(60)));
  for (ArenaBuffer& buffer : buffers) {
    buffer.bytes = below(10) == 0 ? 0 : below(5000);
    buffer.alignment = int64_t{1} << below(9);
    buffer.first_use = below(40);
    buffer.last_use = buffer.first_use + below(15);
  }
  return buffers;
}

TEST(PlanArena, KeepsLiveBuffersApartOnRandomSets) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const std::vector<ArenaBuffer> buffers = RandomBuffers(seed);
    const ArenaPlan plan = PlanArena(buffers);
    SCOPED_TRACE(seed);
    ExpectValid(buffers, plan);
    EXPECT_EQ(plan.max_live_bytes, MostBytesLiveAtOnce(buffers));
    EXPECT_GE(plan.planned_bytes, plan.max_live_bytes);
    int64_t total = 0;
    for (const ArenaBuffer& buffer : buffers) total += buffer.bytes + buffer.alignment;
    EXPECT_LE(plan.planned_bytes, total);
  }
}

TEST(PlanArena, RepeatsForOneInput) {
  const std::vector<ArenaBuffer> buffers = RandomBuffers(5);
  EXPECT_EQ(PlanArena(buffers).offsets, PlanArena(buffers).offsets);
}

TEST(PlanArena, ReusesSpaceOfDeadBuffers) {
  const ArenaPlan plan = PlanArena({{.bytes = 640, .first_use = 0, .last_use = 1},
                                    {.bytes = 640, .first_use = 2, .last_use = 3}});
  EXPECT_EQ(plan.planned_bytes, 640);
  EXPECT_THAT(plan.offsets, ElementsAre(0, 0));
}

TEST(PlanArena, TakesLifetimesAsClosedIntervals) {
  const ArenaPlan plan = PlanArena(
      {{.bytes = 64, .first_use = 0, .last_use = 1}, {.bytes = 64, .first_use = 1, .last_use = 2}});
  EXPECT_EQ(plan.planned_bytes, 128);
  EXPECT_EQ(plan.max_live_bytes, 128);
}

TEST(PlanArena, ReachesTheBoundOnAChain) {
  const std::vector<ArenaBuffer> chain = {{.bytes = 256, .first_use = 0, .last_use = 1},
                                          {.bytes = 128, .first_use = 1, .last_use = 2},
                                          {.bytes = 256, .first_use = 2, .last_use = 3}};
  EXPECT_EQ(PlanArena(chain).planned_bytes, PlanArena(chain).max_live_bytes);
}

TEST(PlanArena, PlansNothingForNothing) {
  const ArenaPlan plan = PlanArena({});
  EXPECT_THAT(plan.offsets, IsEmpty());
  EXPECT_EQ(plan.planned_bytes, 0);
  EXPECT_EQ(PlanArena({{.bytes = 0}}).planned_bytes, 0);
}

TEST(PlanArena, RefusesImpossibleBuffers) {
  EXPECT_THROW(PlanArena({{.bytes = -1}}), Error);
  EXPECT_THROW(PlanArena({{.bytes = 1, .first_use = 2, .last_use = 1}}), Error);
  EXPECT_THROW(PlanArena({{.bytes = 1, .alignment = 0}}), Error);
  EXPECT_THROW(PlanArena({{.bytes = 1, .alignment = 48}}), Error);
}

}  // namespace
}  // namespace skiff
