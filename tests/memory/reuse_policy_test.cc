#include "memory/reuse_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "framework/base/error.h"
#include "tests/harness/temp_directory.h"
#include "tests/memory/arena_sets.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ArenaBuffer Buffer(int64_t bytes, int32_t first, int32_t last, int64_t alignment = 1) {
  return {.bytes = bytes, .alignment = alignment, .first_use = first, .last_use = last};
}

std::vector<int64_t> Offsets(const std::vector<ArenaBuffer>& buffers, ReusePolicy policy) {
  return PlanWithPolicy(buffers, policy).offsets;
}

TEST(ReusePolicyTest, NoneGivesEachBufferAPlaceOfItsOwn) {
  EXPECT_THAT(Offsets({Buffer(5, 0, 0), Buffer(5, 1, 1), Buffer(2, 2, 2)}, ReusePolicy::kNone),
              ElementsAre(0, 5, 10));
}

TEST(ReusePolicyTest, EqualReusesTheSameSizeOnly) {
  EXPECT_THAT(Offsets({Buffer(5, 0, 0), Buffer(4, 1, 1), Buffer(5, 2, 2), Buffer(4, 3, 3)},
                      ReusePolicy::kEqual),
              ElementsAre(0, 5, 0, 5));
}

TEST(ReusePolicyTest, BestFitTakesTheSmallestThatIsLargeEnough) {
  EXPECT_THAT(Offsets({Buffer(9, 0, 0), Buffer(5, 0, 0), Buffer(4, 1, 3), Buffer(6, 1, 3),
                       Buffer(10, 2, 3)},
                      ReusePolicy::kBestFit),
              ElementsAre(0, 9, 9, 0, 14));
}

// A buffer is still in use at its last instant.
TEST(ReusePolicyTest, ABufferLivesThroughItsLastInstant) {
  EXPECT_THAT(Offsets({Buffer(5, 0, 1), Buffer(5, 1, 2), Buffer(5, 2, 2)}, ReusePolicy::kEqual),
              ElementsAre(0, 5, 0));
}

TEST(ReusePolicyTest, GrowEnlargesTheLargestDeadBuffer) {
  const std::vector<ArenaBuffer> buffers = {Buffer(3, 0, 0), Buffer(5, 0, 0), Buffer(8, 1, 1),
                                            Buffer(2, 1, 1)};
  const ArenaPlan plan = PlanWithPolicy(buffers, ReusePolicy::kGrow);
  EXPECT_THAT(plan.offsets, ElementsAre(0, 3, 3, 0));
  EXPECT_EQ(plan.planned_bytes, 11);
  EXPECT_EQ(plan.max_live_bytes, 10);
}

// Greedily, the buffer of 6 takes the dead one of 8, and the second one of 8 needs new memory: 16.
TEST(ReusePolicyTest, BestFitAndGrowTakeThePlanOfEqualIfThatIsSmaller) {
  const std::vector<ArenaBuffer> buffers = {Buffer(8, 0, 0), Buffer(6, 1, 3), Buffer(8, 2, 3)};
  for (const ReusePolicy policy :
       {ReusePolicy::kEqual, ReusePolicy::kBestFit, ReusePolicy::kGrow, ReusePolicy::kArena}) {
    EXPECT_EQ(PlanWithPolicy(buffers, policy).planned_bytes, 14) << ReusePolicyName(policy);
  }
}

// A plan whose buffers add up to more than the limit doesn't count. PlanWithPolicy throws only if
// no plan remains.
TEST(ReusePolicyTest, APolicyThatAllowsLessMayExceedTheLimit) {
  const int64_t huge = int64_t{1} << 60;
  const std::vector<ArenaBuffer> buffers = {Buffer(huge, 0, 0), Buffer(huge - 1, 1, 1)};
  EXPECT_EQ(ErrorOf([&] { PlanWithPolicy(buffers, ReusePolicy::kEqual); }).code(),
            ErrorCode::kResourceExhausted);
  EXPECT_EQ(PlanWithPolicy(buffers, ReusePolicy::kBestFit).planned_bytes, huge);
}

TEST(ReusePolicyTest, PlacesAreAligned) {
  EXPECT_THAT(
      Offsets({Buffer(5, 0, 0), Buffer(5, 0, 1, 64), Buffer(5, 2, 2, 16)}, ReusePolicy::kNone),
      ElementsAre(0, 64, 80));
}

TEST(ReusePolicyTest, HasNames) {
  for (const ReusePolicy policy : kReusePolicies) {
    EXPECT_EQ(ParseReusePolicy(ReusePolicyName(policy)), policy);
  }
  ExpectError([] { ParseReusePolicy("best"); }, ErrorCode::kInvalidArgument,
              "reuse policy \"best\": expected one of none, equal, best_fit, grow, arena");
}

// An empty buffer must not take memory that others need.
TEST(ReusePolicyTest, NothingTakesNoPlace) {
  for (const ReusePolicy policy : kReusePolicies) {
    const ArenaPlan plan =
        PlanWithPolicy({Buffer(100, 0, 0), Buffer(0, 1, 1), Buffer(100, 1, 1)}, policy);
    EXPECT_EQ(plan.planned_bytes, policy == ReusePolicy::kNone ? 200 : 100);
  }
}

TEST(ReusePolicyTest, RefusesWhatIsNoBuffer) {
  for (const ReusePolicy policy : kReusePolicies) {
    EXPECT_EQ(ErrorOf([&] { PlanWithPolicy({Buffer(-1, 0, 0)}, policy); }).code(),
              ErrorCode::kInvalidArgument);
    EXPECT_EQ(ErrorOf([&] { PlanWithPolicy({Buffer(1, 1, 0)}, policy); }).code(),
              ErrorCode::kInvalidArgument);
  }
  const int64_t huge = int64_t{1} << 60;
  EXPECT_EQ(ErrorOf([&] {
              PlanWithPolicy({Buffer(huge, 0, 0), Buffer(huge - 1, 1, 1)}, ReusePolicy::kNone);
            }).code(),
            ErrorCode::kResourceExhausted);
}

TEST(ReusePolicyTest, PlansNothing) {
  for (const ReusePolicy policy : kReusePolicies) {
    EXPECT_THAT(Offsets({}, policy), IsEmpty());
    EXPECT_EQ(PlanWithPolicy({Buffer(0, 0, 0)}, policy).planned_bytes, 0);
  }
}

// No two buffers that are live at one instant overlap, and no policy takes more than an earlier
// one.
TEST(ReusePolicyTest, PlansAreValid) {
  std::mt19937 random(7);
  const auto below = [&](int32_t end) {
    return static_cast<int32_t>(random() % static_cast<uint32_t>(end));
  };
  for (int round = 0; round < 60; ++round) {
    std::vector<ArenaBuffer> buffers(static_cast<size_t>(1 + below(40)));
    for (ArenaBuffer& buffer : buffers) {
      const int32_t first = below(30);
      buffer =
          Buffer(below(8) == 0 ? 0 : below(300), first, first + below(8), int64_t{1} << below(7));
    }
    int64_t bytes_of_lesser_policy = INT64_MAX;
    for (const ReusePolicy policy : kReusePolicies) {
      const ArenaPlan plan = PlanWithPolicy(buffers, policy);
      ASSERT_LE(plan.planned_bytes, bytes_of_lesser_policy) << ReusePolicyName(policy);
      bytes_of_lesser_policy = plan.planned_bytes;
      for (size_t i = 0; i < buffers.size(); ++i) {
        const ArenaBuffer& a = buffers[i];
        ASSERT_EQ(plan.offsets[i] % a.alignment, 0);
        ASSERT_LE(plan.offsets[i] + a.bytes, plan.planned_bytes);
        for (size_t j = 0; j < i; ++j) {
          const ArenaBuffer& b = buffers[j];
          const bool meet = a.first_use <= b.last_use && b.first_use <= a.last_use;
          const bool overlap = plan.offsets[i] < plan.offsets[j] + b.bytes &&
                               plan.offsets[j] < plan.offsets[i] + a.bytes;
          ASSERT_FALSE(meet && overlap) << ReusePolicyName(policy) << ", round " << round;
        }
      }
      ASSERT_GE(plan.planned_bytes, plan.max_live_bytes);
    }
  }
}

ArenaBuffer Slice(int64_t bytes, int32_t first, int32_t last, int64_t offset) {
  return {.bytes = bytes,
          .alignment = 1,
          .first_use = first,
          .last_use = last,
          .group = 0,
          .group_offset = offset};
}

// The slices live at 0 and at 2: the whole from 0 to 2.
TEST(ReusePolicyTest, AGroupIsOneBuffer) {
  const std::vector<ArenaBuffer> buffers = {Buffer(8, 0, 0), Slice(3, 0, 0, 5), Slice(5, 2, 2, 0),
                                            Buffer(8, 1, 1), Buffer(8, 3, 3)};
  EXPECT_THAT(Offsets(buffers, ReusePolicy::kNone), ElementsAre(0, 13, 8, 16, 24));
  for (const ReusePolicy policy :
       {ReusePolicy::kEqual, ReusePolicy::kBestFit, ReusePolicy::kGrow}) {
    EXPECT_THAT(Offsets(buffers, policy), ElementsAre(0, 13, 8, 0, 0)) << ReusePolicyName(policy);
  }
  EXPECT_EQ(PlanWithPolicy(buffers, ReusePolicy::kArena).planned_bytes, 11);
}

TEST(ReusePolicyTest, PlansOfSlicesAreValid) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const std::vector<ArenaBuffer> buffers = RandomSlices(seed);
    for (const ReusePolicy policy : kReusePolicies) {
      const ArenaPlan plan = PlanWithPolicy(buffers, policy);
      ASSERT_EQ(PlacementFault(buffers, plan.offsets, plan.planned_bytes), "")
          << ReusePolicyName(policy) << ", seed " << seed;
      ASSERT_GE(plan.planned_bytes, plan.max_live_bytes);
    }
  }
}

TEST(ReusePolicyTest, RefusesSlicesThatOverlap) {
  for (const ReusePolicy policy : kReusePolicies) {
    ExpectError(
        [&] {
          PlanWithPolicy({Slice(5, 0, 1, 0), Slice(5, 1, 1, 4)}, policy);
        },
        ErrorCode::kInvalidArgument,
        "arena buffers 0 and 1 overlap in group 0 while both live: one ends at 5, the other "
        "begins at 4");
  }
}

}  // namespace
}  // namespace skiff
