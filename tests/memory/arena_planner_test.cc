#include "memory/arena_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "framework/base/error.h"
#include "tests/harness/temp_directory.h"
#include "tests/memory/arena_sets.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Returns the most bytes live at one instant, found independently of the planner.
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
  EXPECT_EQ(PlacementFault(buffers, plan.offsets, plan.planned_bytes), "");
  EXPECT_GE(plan.planned_bytes, plan.max_live_bytes);
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
  const std::vector<ArenaBuffer> empty(1);
  EXPECT_EQ(PlanArena(empty).planned_bytes, 0);
}

TEST(PlanArena, RefusesImpossibleBuffers) {
  const auto plan = [](const ArenaBuffer& buffer) {
    return PlanArena(std::vector<ArenaBuffer>{buffer});
  };
  EXPECT_THROW(plan({.bytes = -1}), Error);
  EXPECT_THROW(plan({.bytes = 1, .first_use = 2, .last_use = 1}), Error);
  EXPECT_THROW(plan({.bytes = 1, .alignment = 0}), Error);
  EXPECT_THROW(plan({.bytes = 1, .alignment = 48}), Error);
  EXPECT_THROW(plan({.bytes = 1, .alignment = int64_t{1} << 40}), Error);
  EXPECT_THROW(plan({.bytes = INT64_MAX}), Error);
}

TEST(PlanArena, RefusesMoreLiveBytesThanAnythingHas) {
  constexpr int64_t kHuge = int64_t{1} << 59;
  const std::vector<ArenaBuffer> three(3, {.bytes = kHuge});
  EXPECT_THROW(PlanArena(three), Error);
}

TEST(PlanArena, PlansHugeBuffersOneAfterAnother) {
  constexpr int64_t kHuge = int64_t{1} << 59;
  std::vector<ArenaBuffer> buffers;
  for (int32_t i = 0; i < 100; ++i) {
    buffers.push_back({.bytes = kHuge - i, .alignment = 1, .first_use = i, .last_use = i});
    buffers.push_back({.bytes = 1, .alignment = 1, .first_use = i, .last_use = i + 1});
  }
  const ArenaPlan plan = PlanArena(buffers);
  ExpectValid(buffers, plan);
  EXPECT_LE(plan.planned_bytes, plan.max_live_bytes + 100);
}

TEST(PlanArena, PlansThousandsOfBuffersThatAllMeet) {
  std::mt19937 random(7);
  std::vector<ArenaBuffer> buffers(4000);
  for (ArenaBuffer& buffer : buffers) {
    buffer.bytes = 1 + random() % 100000 * 2;
    buffer.alignment = int64_t{1} << random() % 7;
    buffer.first_use = static_cast<int32_t>(random() % 1000);
    buffer.last_use = 1000 + static_cast<int32_t>(random() % 1000);
  }
  const ArenaPlan plan = PlanArena(buffers);
  ExpectValid(buffers, plan);
  EXPECT_LT(static_cast<double>(plan.planned_bytes),
            1.01 * static_cast<double>(plan.max_live_bytes));
}

TEST(PlanArena, PlansTwentyThousandBuffers) {
  std::mt19937 random(8);
  std::vector<ArenaBuffer> buffers(20000);
  for (ArenaBuffer& buffer : buffers) {
    const uint32_t limit = 1u << random() % 24;
    buffer.bytes = random() % limit;
    buffer.alignment = 1;
    buffer.first_use = static_cast<int32_t>(random() % 20000);
    // One buffer in eight lives for a single instant.
    const uint32_t factor = random() % 8;
    buffer.last_use = buffer.first_use + static_cast<int32_t>(factor * (random() % 40));
  }
  const ArenaPlan plan = PlanArena(buffers, {.max_search_nodes = 0});
  ExpectValid(buffers, plan);
  EXPECT_LT(static_cast<double>(plan.planned_bytes),
            1.15 * static_cast<double>(plan.max_live_bytes));
}

// The temporaries of an optimizer's step, op by op: the square of each gradient's norm, each
// clipped gradient, and each gradient with the decay added. Between buffers of 4 and 400 bytes,
// aligned to 64, are thousands of gaps in which nothing fits. An order that examines all of them
// runs out of steps before it has a plan at the bound.
TEST(PlanArena, MeetsTheBoundAmongThousandsOfSmallBuffers) {
  constexpr int32_t kTensors = 4000;
  std::vector<ArenaBuffer> buffers;
  for (int32_t i = 0; i < kTensors; ++i) {
    const int32_t clipped = kTensors + i;
    const int32_t decayed = 2 * kTensors + 2 * i;
    buffers.push_back({.bytes = 4, .first_use = i, .last_use = kTensors + kTensors / 2});
    buffers.push_back({.bytes = 400, .first_use = clipped, .last_use = decayed});
    buffers.push_back({.bytes = 400, .first_use = decayed, .last_use = 4 * kTensors + i});
  }
  const ArenaPlan plan = PlanArena(buffers, {.max_search_nodes = 0});
  ExpectValid(buffers, plan);
  for (ArenaBuffer& buffer : buffers) buffer.bytes = (buffer.bytes + 63) / 64 * 64;
  EXPECT_LE(plan.planned_bytes, PlanArena(buffers, {.max_search_nodes = 0}).max_live_bytes);
}

TEST(PlanArena, RepeatsWhereTheStepsOfTheSearchRunOut) {
  const RectangleCuts cuts{.pieces = 500, .instants = 60, .with_pinwheels = true, .seed = 5};
  const std::vector<ArenaBuffer> buffers = CutRectangle(cuts);
  const ArenaPlanOptions options{.max_search_nodes = 1'000'000, .max_search_steps = 3'000'000};
  const ArenaPlan plan = PlanArena(buffers, options);
  ExpectValid(buffers, plan);
  EXPECT_EQ(plan.offsets, PlanArena(buffers, options).offsets);
}

// Values of a forward pass, then those of a backward pass in reverse order.
TEST(PlanArena, MeetsTheBoundWhereLivesNest) {
  std::mt19937 random(9);
  constexpr int32_t kOps = 150;
  std::vector<ArenaBuffer> buffers;
  for (int32_t i = 0; i < kOps; ++i) {
    const auto bytes = static_cast<int64_t>(64 * (1 + random() % 5000));
    buffers.push_back({.bytes = bytes, .first_use = i, .last_use = 2 * kOps - i});
    buffers.push_back({.bytes = bytes, .first_use = 2 * kOps - i, .last_use = 2 * kOps - i + 1});
  }
  const ArenaPlan plan = PlanArena(buffers, {.max_search_nodes = 0});
  ExpectValid(buffers, plan);
  EXPECT_EQ(plan.planned_bytes, plan.max_live_bytes);
}

ArenaBuffer Slice(int64_t bytes, int32_t first, int32_t last, int64_t offset, int32_t group = 0,
                  int64_t alignment = 1) {
  return {.bytes = bytes,
          .alignment = alignment,
          .first_use = first,
          .last_use = last,
          .group = group,
          .group_offset = offset};
}

TEST(PlanArena, KeepsGroupsTogetherOnRandomSets) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    const std::vector<ArenaBuffer> buffers = RandomSlices(seed);
    const ArenaPlan plan = PlanArena(buffers);
    SCOPED_TRACE(seed);
    ExpectValid(buffers, plan);
    EXPECT_EQ(plan.max_live_bytes, MostBytesLiveAtOnce(buffers));
    EXPECT_EQ(plan.offsets, PlanArena(buffers).offsets);
  }
}

TEST(PlanArena, GivesTheSpaceOfASliceToOthersWhileItIsNotAlive) {
  const std::vector<ArenaBuffer> buffers = {
      Slice(100, 2, 3, 0),
      Slice(50, 4, 6, 100),
      {.bytes = 50, .alignment = 1, .last_use = 3},
      {.bytes = 100, .alignment = 1, .last_use = 1},
      {.bytes = 100, .alignment = 1, .first_use = 4, .last_use = 9}};
  const ArenaPlan plan = PlanArena(buffers);
  ExpectValid(buffers, plan);
  EXPECT_EQ(plan.planned_bytes, 150);
  EXPECT_EQ(plan.max_live_bytes, 150);
}

TEST(PlanArena, GivesTheGapsOfAGroupToOthers) {
  const std::vector<ArenaBuffer> comb = {
      Slice(8, 0, 9, 0),    Slice(8, 0, 9, 16),    Slice(8, 0, 9, 32),
      Slice(8, 0, 9, 0, 1), Slice(8, 0, 9, 16, 1), {.bytes = 8, .alignment = 1, .last_use = 9}};
  const ArenaPlan plan = PlanArena(comb);
  ExpectValid(comb, plan);
  EXPECT_EQ(plan.planned_bytes, 48);
}

// The gradients of a training, in the order of their layers or in reverse. Those of the last
// layers, which are written first and are large, are best placed at an end of the arena.
TEST(PlanArena, ComesNearTheBoundWhereSlicesComeToLifeOneAfterAnother) {
  std::mt19937 random(9);
  constexpr int32_t kOps = 150;
  std::vector<ArenaBuffer> forward, backward;
  int64_t total = 0;
  for (int32_t i = 0; i < kOps; ++i) {
    const auto bytes = static_cast<int64_t>(64 * (1 + random() % 5000));
    const auto gradient = static_cast<int64_t>(64 * (1 + random() % (i < 140 ? 1000 : 40000)));
    const ArenaBuffer slice = Slice(gradient, 2 * kOps - i, 2 * kOps + 1, total, 3, 64);
    for (std::vector<ArenaBuffer>* buffers : {&forward, &backward}) {
      buffers->push_back({.bytes = bytes, .first_use = i, .last_use = 2 * kOps - i});
      buffers->push_back(slice);
    }
    total += gradient;
  }
  for (ArenaBuffer& buffer : backward) {
    if (buffer.group >= 0) buffer.group_offset = total - buffer.group_offset - buffer.bytes;
  }
  for (const std::vector<ArenaBuffer>& buffers : {forward, backward}) {
    const ArenaPlan plan = PlanArena(buffers);
    ExpectValid(buffers, plan);
    EXPECT_LE(static_cast<double>(plan.planned_bytes),
              1.002 * static_cast<double>(plan.max_live_bytes));
  }
}

TEST(PlanArena, GroupsOfDifferentTimesShareSpace) {
  const std::vector<ArenaBuffer> buffers = {Slice(64, 0, 1, 0), Slice(64, 1, 2, 64),
                                            Slice(96, 3, 4, 0, 1), Slice(32, 4, 5, 96, 1)};
  EXPECT_EQ(PlanArena(buffers).planned_bytes, 128);
}

// The space that the large group leaves free at first is contiguous with the rest only if the small
// group is below it.
TEST(PlanArena, PutsTheSmallGroupLowestWhereThatIsBetter) {
  std::vector<ArenaBuffer> buffers = {Slice(10, 0, 9, 0, 1), Slice(5, 0, 9, 10, 1),
                                      Slice(100, 0, 9, 0), Slice(100, 5, 9, 100)};
  buffers.push_back({.bytes = 150, .alignment = 1, .first_use = 0, .last_use = 4});
  buffers.push_back({.bytes = 50, .alignment = 1, .first_use = 5, .last_use = 9});
  const ArenaPlan plan = PlanArena(buffers);
  ExpectValid(buffers, plan);
  EXPECT_EQ(plan.planned_bytes, plan.max_live_bytes);
}

TEST(PlanArena, TakesSlicesOverEachOtherAtDifferentTimes) {
  const std::vector<ArenaBuffer> buffers = {Slice(100, 0, 1, 0), Slice(50, 2, 3, 20),
                                            Slice(30, 2, 3, 70), Slice(100, 4, 4, 0)};
  const ArenaPlan plan = PlanArena(buffers);
  ExpectValid(buffers, plan);
  EXPECT_EQ(plan.planned_bytes, 100);
}

TEST(PlanArena, PlansAGroupOfOne) {
  std::vector<ArenaBuffer> buffers = {Slice(10, 0, 2, 0, 5),
                                      {.bytes = 20, .alignment = 1, .last_use = 2}};
  EXPECT_EQ(PlanArena(buffers).planned_bytes, 30);
  // The space below it is free for others.
  buffers[0].group_offset = 20;
  const ArenaPlan plan = PlanArena(buffers);
  ExpectValid(buffers, plan);
  EXPECT_THAT(plan.offsets, ElementsAre(20, 0));
  // The search places it like a buffer in no group.
  const RectangleCuts cuts{.pieces = 60, .instants = 200, .with_pinwheels = true, .seed = 4};
  buffers = CutRectangle(cuts);
  for (size_t i = 0; i < buffers.size(); ++i) buffers[i].group = static_cast<int32_t>(i);
  EXPECT_EQ(PlanArena(buffers, {.max_search_nodes = 1'000'000}).planned_bytes, cuts.bytes);
}

TEST(PlanArena, SlicesWithoutBytesLieWhereTheirGroupHasThem) {
  const std::vector<ArenaBuffer> buffers = {Slice(0, 0, 0, 0, 0, 256),   Slice(5, 0, 9, 0),
                                            Slice(0, 3, 3, 2),           Slice(0, 3, 3, 4096),
                                            Slice(0, 0, 0, 0, 1),        Slice(0, 0, 0, 1, 1),
                                            {.bytes = 64, .last_use = 9}};
  const ArenaPlan plan = PlanArena(buffers);
  ExpectValid(buffers, plan);
  EXPECT_EQ(plan.max_live_bytes, 69);
  EXPECT_EQ(plan.offsets[5], 1);
}

TEST(PlanArena, AlignsTheBaseForAllSlices) {
  const std::vector<ArenaBuffer> buffers = {{.bytes = 3, .alignment = 1, .last_use = 9},
                                            Slice(3, 0, 9, 0),
                                            Slice(8, 0, 9, 8, 0, 8),
                                            Slice(1, 0, 9, 128, 0, 64)};
  ExpectValid(buffers, PlanArena(buffers));
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::vector<ArenaBuffer> random = RandomSlices(seed);
    for (size_t i = 0; i < random.size(); ++i) {
      random[i].first_use = 0;
      random[i].alignment = int64_t{1} << i % 25;
      random[i].group_offset = static_cast<int64_t>(i) << 25;
    }
    SCOPED_TRACE(seed);
    ExpectValid(random, PlanArena(random));
  }
}

TEST(PlanArena, RefusesImpossibleSlices) {
  const auto error_of = [](const std::vector<ArenaBuffer>& buffers) {
    return ErrorOf([&] { PlanArena(buffers); });
  };
  EXPECT_EQ(error_of({Slice(8, 0, 0, -8)}).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of({Slice(8, 0, 0, 4, 0, 8)}).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of({Slice(8, 0, 0, INT64_MAX - 4)}).code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(error_of({Slice(0, 0, 0, INT64_MAX)}).code(), ErrorCode::kResourceExhausted);
  // The message doesn't name the buffer between them, nor one of another group.
  const Error overlap = error_of({Slice(8, 0, 9, 8, 1),
                                  {.bytes = 8},
                                  Slice(9, 3, 5, 0, 0),
                                  Slice(9, 5, 6, 0, 1),
                                  Slice(8, 6, 7, 0, 1)});
  EXPECT_EQ(overlap.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(overlap.what(), HasSubstr("arena buffers 0 and 3 overlap in group 1"));
  EXPECT_NO_THROW(PlanArena({Slice(8, 0, 4, 8), Slice(9, 5, 6, 0)}));
}

TEST(PlanArena, PlansHugeGroups) {
  constexpr int64_t kHuge = int64_t{1} << 59;
  std::vector<ArenaBuffer> buffers;
  for (int32_t i = 0; i < 40; ++i) {
    buffers.push_back(Slice(kHuge - i, i, i, i % 2 == 0 ? 0 : kHuge, i / 20));
    buffers.push_back({.bytes = kHuge - 7, .alignment = 1, .first_use = i, .last_use = i});
  }
  const ArenaPlan plan = PlanArena(buffers);
  ExpectValid(buffers, plan);
  EXPECT_LE(plan.planned_bytes, 4 * kHuge);
  buffers.push_back({.bytes = kHuge, .alignment = 1, .first_use = 20, .last_use = 20});
  EXPECT_EQ(ErrorOf([&] { PlanArena(buffers); }).code(), ErrorCode::kResourceExhausted);
}

TEST(PlanArena, PlansTwentyThousandBuffersWithGroups) {
  std::mt19937 random(8);
  constexpr int32_t kInstants = 20000;
  std::vector<ArenaBuffer> buffers(19200);
  for (ArenaBuffer& buffer : buffers) {
    const uint32_t limit = 1u << random() % 24;
    buffer.bytes = random() % limit;
    buffer.first_use = static_cast<int32_t>(random() % kInstants);
    const uint32_t factor = random() % 8;
    buffer.last_use = buffer.first_use + static_cast<int32_t>(factor * (random() % 40));
  }
  int64_t total[2] = {};
  for (int32_t i = 0; i < 800; ++i) {
    const int64_t bytes = 4 * (1 + random() % 20000);
    buffers.push_back(Slice(bytes, kInstants - 10 * i, kInstants + 1, total[i % 2], i % 2, 4));
    total[i % 2] += bytes;
  }
  const ArenaPlan plan = PlanArena(buffers);
  ExpectValid(buffers, plan);
  EXPECT_LT(static_cast<double>(plan.planned_bytes),
            1.05 * static_cast<double>(plan.max_live_bytes));
}

TEST(PlanArena, SearchesWhereTheOrdersDontDo) {
  const RectangleCuts cuts{.pieces = 60, .instants = 200, .with_pinwheels = true, .seed = 4};
  const std::vector<ArenaBuffer> buffers = CutRectangle(cuts);
  EXPECT_GT(PlanArena(buffers, {.max_search_nodes = 0}).planned_bytes, cuts.bytes);
  const ArenaPlan plan = PlanArena(buffers, {.max_search_nodes = 1'000'000});
  ExpectValid(buffers, plan);
  EXPECT_EQ(plan.planned_bytes, cuts.bytes);
}

TEST(PlanArena, ComesNearTheBoundInFewNodes) {
  const RectangleCuts cuts{.pieces = 500, .instants = 60, .with_pinwheels = true, .seed = 5};
  const std::vector<ArenaBuffer> buffers = CutRectangle(cuts);
  const ArenaPlan plan =
      PlanArena(buffers, {.max_search_nodes = 60'000, .max_search_steps = 1'000'000'000});
  ExpectValid(buffers, plan);
  EXPECT_LE(static_cast<double>(plan.planned_bytes), 1.10 * static_cast<double>(cuts.bytes));
}

TEST(PlanArena, StopsAtTheCapacity) {
  const RectangleCuts cuts{.pieces = 60, .instants = 200, .with_pinwheels = true, .seed = 4};
  const std::vector<ArenaBuffer> buffers = CutRectangle(cuts);
  const int64_t capacity = cuts.bytes + cuts.bytes / 10;
  const ArenaPlan plan = PlanArena(buffers, {.capacity = capacity, .max_search_nodes = 1'000'000});
  ExpectValid(buffers, plan);
  EXPECT_LE(plan.planned_bytes, capacity);
}

TEST(PlanArena, EndsOnceItHasProvenThatNothingIsBetter) {
  int above_bound = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const std::vector<ArenaBuffer> buffers = FullLoad(6, 12, seed);
    const ArenaPlan plan = PlanArena(buffers, {.max_search_nodes = INT64_MAX});
    ExpectValid(buffers, plan);
    if (plan.planned_bytes > plan.max_live_bytes) ++above_bound;
  }
  EXPECT_GT(above_bound, 0);
}

}  // namespace
}  // namespace skiff
