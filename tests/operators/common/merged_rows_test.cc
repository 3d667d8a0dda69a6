#include "operators/common/merged_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "framework/base/error.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A workspace of exactly the requested size.
std::vector<int64_t> WorkspaceFor(size_t slots) {
  const auto bytes = static_cast<size_t>(MergedRowsWorkspaceBytes(static_cast<int64_t>(slots)));
  EXPECT_EQ(bytes % sizeof(int64_t), 0U);
  return std::vector<int64_t>(bytes / sizeof(int64_t), -7);
}

TEST(MergedRows, AreAscendingWithTheirSlotsInOrder) {
  const std::vector<int64_t> rows = {5, 2, 5, -1, 0, 5};
  std::vector<int64_t> workspace = WorkspaceFor(rows.size());
  const MergedRows merged = MergeRows(rows, 6, workspace.data());
  ASSERT_EQ(merged.count(), 3);
  EXPECT_EQ(merged.row(0), 0);
  EXPECT_EQ(merged.row(1), 2);
  EXPECT_EQ(merged.row(2), 5);
  EXPECT_THAT(merged.slots(0), ElementsAre(4));
  EXPECT_THAT(merged.slots(1), ElementsAre(1));
  EXPECT_THAT(merged.slots(2), ElementsAre(0, 2, 5));
}

TEST(MergedRows, OfNothingAreNone) {
  std::vector<int64_t> workspace = WorkspaceFor(0);
  EXPECT_EQ(MergeRows({}, 6, workspace.data()).count(), 0);
  const std::vector<int64_t> unused = {-1, -1};
  workspace = WorkspaceFor(2);
  EXPECT_EQ(MergeRows(unused, 0, workspace.data()).count(), 0);
}

TEST(MergedRows, RefuseARowThatIsNotThere) {
  for (const int64_t row : {int64_t{6}, int64_t{-2}, INT64_MAX, INT64_MIN}) {
    const std::vector<int64_t> rows = {1, row};
    std::vector<int64_t> workspace = WorkspaceFor(2);
    try {
      MergeRows(rows, 6, workspace.data());
      ADD_FAILURE() << row << " is taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kOutOfRange);
      EXPECT_THAT(std::string(error.what()), HasSubstr("in slot 1, expected one in [0, 6), or -1"));
    }
  }
}

TEST(MergedRows, AreThoseOfAMap) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<int64_t> rows(random() % 300);
    const auto height = static_cast<int64_t>(1 + random() % 100);
    std::map<int64_t, std::vector<int64_t>> expected;
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i] = static_cast<int64_t>(random() % (static_cast<uint64_t>(height) + 1)) - 1;
      if (rows[i] >= 0) expected[rows[i]].push_back(static_cast<int64_t>(i));
    }
    std::vector<int64_t> workspace = WorkspaceFor(rows.size());
    const MergedRows merged = MergeRows(rows, height, workspace.data());
    ASSERT_EQ(merged.count(), static_cast<int64_t>(expected.size()));
    int64_t i = 0;
    for (const auto& [row, slots] : expected) {
      EXPECT_EQ(merged.row(i), row);
      EXPECT_TRUE(std::ranges::equal(merged.slots(i), slots));
      ++i;
    }
  }
}

TEST(MergedRows, AddTheirSlotsInOrder) {
  // In float32, 1 is lost when added to 2^24, but not after 2^24 and -2^24.
  const std::vector<float> values = {0x1p24f, 7, -0x1p24f, 8, 1, 9};
  const std::vector<int64_t> slots = {0, 1, 2};
  float sums[2];
  AddSlots<float>(values.data(), 2, slots, 0, 2, sums);
  EXPECT_THAT(sums, ElementsAre(1, 24));
  const std::vector<int64_t> other = {0, 2, 1};
  AddSlots<float>(values.data(), 2, other, 0, 1, sums);
  EXPECT_EQ(sums[0], 0);
}

}  // namespace
}  // namespace skiff
