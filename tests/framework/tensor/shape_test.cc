#include "framework/tensor/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "framework/base/error.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;

TEST(Shape, RankZeroHasOneElement) {
  const Shape scalar;
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(scalar.element_count(), 1);
  EXPECT_TRUE(scalar.is_known());
}

TEST(Shape, CountsElements) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.element_count(), 24);
  EXPECT_EQ(shape.element_count(1, 3), 12);
  EXPECT_EQ(shape.element_count(1, 1), 1);
  EXPECT_EQ((Shape{2, 0, 4}).element_count(), 0);
}

TEST(Shape, RefusesUnknownDimsAndTooManyElementsInCounts) {
  EXPECT_FALSE((Shape{-1, 3}).is_known());
  EXPECT_THROW((Shape{-1, 3}).element_count(), Error);
  EXPECT_EQ((Shape{-1, 3}).element_count(1, 2), 3);
  const int64_t large = std::numeric_limits<int64_t>::max() / 2;
  EXPECT_THROW((Shape{large, 3}).element_count(), Error);
  EXPECT_THROW((Shape{large, 0}).element_count(), Error);
}

TEST(Shape, CountsAxesFromTheBack) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.dim(0), 2);
  EXPECT_EQ(shape.dim(-1), 4);
  EXPECT_THROW(shape.dim(3), Error);
  EXPECT_THROW(shape.dim(-4), Error);
  EXPECT_EQ(NormalizeAxis(-3, 3, "axis"), 0);
  EXPECT_THROW(NormalizeAxis(0, 0, "axis"), Error);
}

TEST(Shape, HoldsNoMoreThanItsMaximumRank) {
  const std::vector<int64_t> dims(Shape::kMaxRank, 1);
  Shape shape(dims);
  EXPECT_EQ(shape.rank(), Shape::kMaxRank);
  EXPECT_THROW(shape.Append(1), Error);
  const std::vector<int64_t> more(Shape::kMaxRank + 1, 1);
  EXPECT_THROW(Shape{std::span<const int64_t>(more)}, Error);
}

TEST(Shape, ComparesRankAndDims) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_FALSE((Shape{2, 3}) == (Shape{2, 3, 1}));
  EXPECT_FALSE((Shape{2, 3}) == (Shape{3, 2}));
}

TEST(Shape, AppendsAndPrints) {
  Shape shape{64};
  shape.Append(10);
  EXPECT_THAT(shape.ToVector(), ElementsAre(64, 10));
  EXPECT_EQ(StrCat(shape), "[64, 10]");
  EXPECT_EQ(StrCat(Shape{}), "[]");
}

}  // namespace
}  // namespace skiff
