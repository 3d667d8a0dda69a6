#include "framework/executor/rows/row_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

namespace skiff {
namespace {

using ::testing::ElementsAre;

TEST(CapacityFor, HoldsTheCountAndIsAtMostAQuarterMore) {
  int64_t last = 0;
  for (int64_t count = 0; count <= 5000; ++count) {
    const int64_t capacity = CapacityFor(count);
    EXPECT_GE(capacity, count);
    EXPECT_GE(capacity, last) << count;
    EXPECT_EQ(capacity % 8, 0) << count;
    EXPECT_EQ(CapacityFor(capacity), capacity) << count;
    if (count >= 32) {
      EXPECT_LE(capacity, count + count / 4) << count;
    }
    last = capacity;
  }
}

TEST(CapacityFor, HasFourStepsForEachPowerOfTwo) {
  std::vector<int64_t> capacities;
  for (int64_t count = 129; count <= 512; ++count) {
    const int64_t capacity = CapacityFor(count);
    if (capacities.empty() || capacities.back() != capacity) capacities.push_back(capacity);
  }
  EXPECT_THAT(capacities, ElementsAre(160, 192, 224, 256, 320, 384, 448, 512));
}

TEST(AppendCounts, TellsSequencesOfEachLevelAndRows) {
  std::vector<int64_t> counts;
  AppendCounts({{0, 2, 3}, {0, 4, 4, 9}}, &counts);
  EXPECT_THAT(counts, ElementsAre(2, 3, 9));
}

TEST(WidenLoD, AppendsSequencesAndGivesTheShortestTheRest) {
  EXPECT_EQ(WidenLoD({{0, 2, 5}}, {4, 10}), (LoD{{0, 3, 6, 8, 10}}));
}

TEST(WidenLoD, AppendsEmptySequencesIfThereAreNoMoreRows) {
  EXPECT_EQ(WidenLoD({{0, 2, 5}}, {5, 6}), (LoD{{0, 2, 5, 6, 6, 6}}));
}

TEST(WidenLoD, LengthensTheLongestSequenceOnlyIfAllAreAsLong) {
  EXPECT_EQ(WidenLoD({{0, 7, 8, 9}}, {3, 16}), (LoD{{0, 7, 12, 16}}));
  EXPECT_EQ(WidenLoD({{0, 2, 4}}, {2, 8}), (LoD{{0, 4, 8}}));
}

// Row by row, that would take a thousand years.
TEST(WidenLoD, TakesNoLongerForMoreRows) {
  constexpr int64_t kRows = int64_t{1} << 60;
  constexpr uint64_t kEach = (kRows + 2) / 3;
  EXPECT_EQ(WidenLoD({{0, 2, 5}}, {3, kRows + 2}),
            (LoD{{0, kEach, 2 * kEach, static_cast<uint64_t>(kRows + 2)}}));
}

TEST(WidenLoD, WidensEachLevel) {
  const LoD wide = WidenLoD({{0, 1, 2}, {0, 2, 5}}, {3, 4, 8});
  EXPECT_EQ(wide, (LoD{{0, 2, 3, 4}, {0, 2, 5, 7, 8}}));
  CheckLoD(wide, 8);
}

TEST(EvenLoD, DividesRowsAmongSequences) {
  EXPECT_EQ(EvenLoD({4, 8}), (LoD{{0, 2, 4, 6, 8}}));
  EXPECT_EQ(EvenLoD({2, 32}), (LoD{{0, 16, 32}}));
  CheckLoD(EvenLoD({3, 7, 11}), 11);
}

TEST(UnevenLoD, IsAnotherOneForEachKind) {
  EXPECT_EQ(UnevenLoD({3, 9}, 0), (LoD{{0, 4, 7, 9}}));
  for (const auto& counts : std::vector<std::vector<int64_t>>{{8, 16}, {4, 64}, {8, 8, 24}}) {
    std::set<LoD> seen = {EvenLoD(counts)};
    for (size_t kind = 0; kind < 3; ++kind) {
      const LoD lod = UnevenLoD(counts, kind);
      CheckLoD(lod, counts.back());
      EXPECT_TRUE(seen.insert(lod).second) << "kind " << kind << " of " << counts.front();
    }
  }
}

TEST(DifferInRowsAlone, LooksAtAllDimsButTheFirst) {
  EXPECT_TRUE(DifferInRowsAlone({3, 4}, {5, 4}));
  EXPECT_FALSE(DifferInRowsAlone({3, 4}, {3, 5}));
  EXPECT_FALSE(DifferInRowsAlone({3, 4}, {3}));
  EXPECT_TRUE(DifferInRowsAlone({}, {}));
}

std::shared_ptr<const LoDGroup> GroupOf(LoD lod) {
  return std::make_shared<const LoDGroup>(LoDGroup{.offsets = std::move(lod)});
}

// Ragged ids of 3 sequences and 7 rows, a label for each sequence, a table whose rows are fixed.
class CountClassesTest : public ::testing::Test {
 protected:
  const FeedMetas feeds_ = {
      {"ids",
       {.shape = {7}, .dtype = DType::kInt64, .lod_level = 1, .lod = GroupOf({{0, 1, 3, 7}})}},
      {"label", {.shape = {3, 1}, .dtype = DType::kInt64}},
      {"table", {.shape = {5, 2}}}};
  const CountClasses classes_{feeds_, {true, true, false}};
};

TEST_F(CountClassesTest, EqualCountsAreOneClass) {
  EXPECT_THAT(classes_.counts(), ElementsAre(3, 7));
  EXPECT_THAT(classes_.Capacity(), ElementsAre(8, 8));
  EXPECT_TRUE(classes_.Varies(0));
  EXPECT_TRUE(classes_.Varies(1));
  EXPECT_FALSE(classes_.Varies(2));
}

TEST_F(CountClassesTest, FeedsAreWidenedByClass) {
  const FeedMetas wide = classes_.Widened(feeds_, {4, 9});
  EXPECT_EQ(wide[0].second.shape, (Shape{9}));
  EXPECT_EQ(wide[0].second.lod->offsets, (LoD{{0, 2, 4, 8, 9}}));
  EXPECT_EQ(wide[1].second.shape, (Shape{4, 1}));
  EXPECT_EQ(wide[2].second.shape, (Shape{5, 2}));
  EXPECT_EQ(classes_.Even(feeds_, {2, 6})[0].second.lod->offsets, (LoD{{0, 3, 6}}));
}

TEST_F(CountClassesTest, GatherFindsCountsThatContradictEachOther) {
  Tensor ids({5}, DType::kInt64);
  ids.set_lod({{0, 2, 5}});
  std::vector<int64_t> counts = {-1, -1};
  EXPECT_TRUE(classes_.Gather(0, ids.shape()[0], ids.lod(), &counts));
  EXPECT_THAT(counts, ElementsAre(2, 5));
  EXPECT_TRUE(classes_.Gather(1, 2, {}, &counts));
  EXPECT_FALSE(classes_.Gather(1, 3, {}, &counts));
}

}  // namespace
}  // namespace skiff
