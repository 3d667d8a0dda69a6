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

TEST(Layout, SelectedRowsHaveTheirNumbersAfterTheValues) {
  const Layout rows = Layout::SelectedRows(100);
  EXPECT_FALSE(rows.is_plain());
  EXPECT_FALSE(rows.is_blocked());
  EXPECT_EQ(StorageElements({3, 5}, rows), 15);
  EXPECT_EQ(RowNumbersOffset({3, 5}, DType::kFloat32), 64);
  EXPECT_EQ(StorageBytes({3, 5}, DType::kFloat32, rows), 64 + 24);
  EXPECT_EQ(StorageBytes({3, 5}, DType::kFloat64, rows), 120 + 24);
  EXPECT_EQ(StorageBytes({0, 5}, DType::kFloat32, rows), 0);
  EXPECT_EQ(StorageBytes({3, 5}, DType::kFloat32, Layout::Plain()), 60);
  EXPECT_EQ(DenseShape({3, 5}, rows), (Shape{100, 5}));
  EXPECT_EQ(DenseShape({3, 5}, Layout::Plain()), (Shape{3, 5}));
}

TEST(Layout, SelectedRowsOfAnotherHeightAreAnotherLayout) {
  EXPECT_EQ(Layout::SelectedRows(7), Layout::SelectedRows(7));
  EXPECT_FALSE(Layout::SelectedRows(7) == Layout::SelectedRows(8));
  EXPECT_FALSE(Layout::SelectedRows(-1) == Layout::Plain());
}

TEST(Layout, SelectedRowsNeedADimAndACountOfBytes) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_THROW(StorageElements({}, Layout::SelectedRows(1)), Error);
  EXPECT_THROW(DenseShape({}, Layout::SelectedRows(1)), Error);
  EXPECT_THROW(StorageBytes({kMost / 4, 1}, DType::kFloat32, Layout::SelectedRows(1)), Error);
  EXPECT_THROW(StorageBytes({kMost, 0}, DType::kFloat32, Layout::SelectedRows(1)), Error);
  EXPECT_THROW(StorageBytes({-1, 2}, DType::kFloat32, Layout::SelectedRows(1)), Error);
}

TEST(Layout, Prints) {
  EXPECT_EQ(StrCat(Layout::SelectedRows(5)), "selected_rows(height 5)");
  EXPECT_EQ(StrCat(Layout::Plain()), "plain");
  EXPECT_EQ(StrCat(Layout::Blocked(16)), "blocked16");
}

}  // namespace
}  // namespace skiff
