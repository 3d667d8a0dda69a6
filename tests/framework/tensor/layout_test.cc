#include "framework/tensor/layout.h"

#include <gtest/gtest.h>

#include <limits>

#include "framework/base/error.h"

namespace skiff {
namespace {

TEST(Layout, PlainOccupiesTheElements) {
  EXPECT_EQ(StorageElements({2, 3, 4, 5}, Layout::Plain()), 120);
  EXPECT_EQ(StorageElements({}, Layout::Plain()), 1);
}

TEST(Layout, BlockedRoundsChannelsUp) {
  EXPECT_EQ(StorageElements({2, 17, 4, 5}, Layout::Blocked(16)), 2 * 32 * 4 * 5);
  EXPECT_EQ(StorageElements({2, 16, 4, 5}, Layout::Blocked(16)), 2 * 16 * 4 * 5);
  EXPECT_EQ(StorageElements({2, 1}, Layout::Blocked(8)), 2 * 8);
  EXPECT_EQ(StorageElements({0, 17, 4, 5}, Layout::Blocked(16)), 0);
}

TEST(Layout, RefusesShapesWithoutChannelsOrUnknown) {
  EXPECT_THROW(StorageElements({7}, Layout::Blocked(8)), Error);
  EXPECT_THROW(StorageElements({-1, 3, 2, 2}, Layout::Blocked(8)), Error);
  EXPECT_THROW(StorageElements({2, -1, 2, 2}, Layout::Blocked(8)), Error);
  EXPECT_THROW(StorageElements({-1, 3}, Layout::Plain()), Error);
}

TEST(Layout, RefusesWhatNoCountHolds) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_THROW(StorageElements({1, kMost}, Layout::Blocked(8)), Error);
  EXPECT_THROW(StorageElements({2, kMost}, Layout::Plain()), Error);
}

TEST(Layout, Prints) {
  EXPECT_EQ(StrCat(Layout::Plain()), "plain");
  EXPECT_EQ(StrCat(Layout::Blocked(16)), "blocked16");
}

}  // namespace
}  // namespace skiff
