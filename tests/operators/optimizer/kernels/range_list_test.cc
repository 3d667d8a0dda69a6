#include "operators/optimizer/kernels/range_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace skiff {
namespace {

using ::testing::ElementsAre;

UpdateRange<float> RangeOf(int64_t count) {
  UpdateRange<float> range;
  range.count = count;
  return range;
}

TEST(RangeList, CountsTheElementsBeforeEachRange) {
  RangeList<float> list;
  EXPECT_EQ(list.element_count(), 0);
  EXPECT_THAT(list.begins(), ElementsAre(0));
  for (const int64_t count : {3, 0, 4}) list.Append(RangeOf(count));
  EXPECT_EQ(list.size(), 3U);
  EXPECT_EQ(list.element_count(), 7);
  EXPECT_THAT(list.begins(), ElementsAre(0, 3, 3, 7));
}

TEST(RangeList, ExtendsTheLastRangeOnly) {
  RangeList<float> list;
  list.Append(RangeOf(3));
  list.Append(RangeOf(4));
  list.ExtendLast(5);
  EXPECT_EQ(list[0].count, 3);
  EXPECT_EQ(list[1].count, 9);
  EXPECT_THAT(list.begins(), ElementsAre(0, 3, 12));
}

TEST(RangeList, StartsAnewOnceCleared) {
  RangeList<float> list;
  list.Append(RangeOf(3));
  list.Clear();
  EXPECT_EQ(list.size(), 0U);
  list.Append(RangeOf(2));
  EXPECT_THAT(list.begins(), ElementsAre(0, 2));
}

}  // namespace
}  // namespace skiff
