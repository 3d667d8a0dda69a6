#include "framework/base/element_count.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace skiff {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

int64_t CountOf(const std::vector<int64_t>& dims) { return ElementCount(dims); }

ErrorCode CodeOf(const std::vector<int64_t>& dims) {
  try {
    ElementCount(dims);
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::kIo;
}

TEST(ElementCount, IsTheProductOfTheDims) {
  EXPECT_EQ(CountOf({}), 1);
  EXPECT_EQ(CountOf({7}), 7);
  EXPECT_EQ(CountOf({2, 3, 4}), 24);
  EXPECT_EQ(CountOf({kMaxElementCount}), kMaxElementCount);
}

TEST(ElementCount, IsZeroIfADimIs) {
  EXPECT_EQ(CountOf({0}), 0);
  EXPECT_EQ(CountOf({kMaxElementCount, 0, 1}), 0);
  EXPECT_EQ(CountOf({0, kMaxElementCount / 4, 0, 4}), 0);
}

TEST(ElementCount, RefusesNegativeDims) {
  EXPECT_EQ(CodeOf({-1, 4}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf({0, -1}), ErrorCode::kInvalidArgument);
}

TEST(ElementCount, RefusesMoreThanATensorMayHave) {
  EXPECT_EQ(CodeOf({kMaxElementCount + 1}), ErrorCode::kOutOfRange);
  EXPECT_EQ(CodeOf({kMax, 2}), ErrorCode::kOutOfRange);
  EXPECT_EQ(CodeOf({int64_t{1} << 32, int64_t{1} << 32}), ErrorCode::kOutOfRange);
  EXPECT_EQ(CountOf({int64_t{1} << 24, int64_t{1} << 24}), kMaxElementCount);
}

TEST(ElementCount, RefusesAnEmptyShapeWhoseOtherDimsMakeTooMany) {
  EXPECT_EQ(CodeOf({int64_t{1} << 61, 0}), ErrorCode::kOutOfRange);
  EXPECT_EQ(CodeOf({0, kMaxElementCount + 1}), ErrorCode::kOutOfRange);
  // 2^64 is 0 in 64 bits.
  EXPECT_EQ(CodeOf({int64_t{1} << 32, 0, int64_t{1} << 32}), ErrorCode::kOutOfRange);
  EXPECT_EQ(CodeOf({kMax, kMax, 0}), ErrorCode::kOutOfRange);
}

TEST(CheckElementLimit, CountsUnknownDimsAsOne) {
  const auto is_legal = [](const std::vector<int64_t>& dims) {
    try {
      CheckElementLimit(dims);
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kOutOfRange);
      return false;
    }
  };
  EXPECT_TRUE(is_legal({}));
  EXPECT_TRUE(is_legal({-1, kMaxElementCount, -1}));
  EXPECT_FALSE(is_legal({-1, kMaxElementCount, 2}));
  EXPECT_FALSE(is_legal({kMaxElementCount + 1, -1}));
}

TEST(ByteCount, ScalesByTheElementAndRefusesOverflow) {
  EXPECT_EQ(ByteCount(10, DType::kFloat32), 40);
  EXPECT_EQ(ByteCount(0, DType::kFloat64), 0);
  EXPECT_THROW(ByteCount(kMax / 4, DType::kFloat64), Error);
  EXPECT_THROW(ByteCount(-1, DType::kFloat32), Error);
}

TEST(MultiplyCounts, RefusesNegativeFactorsAndOverflow) {
  EXPECT_EQ(MultiplyCounts(6, 7), 42);
  EXPECT_EQ(MultiplyCounts(kMax, 1), kMax);
  EXPECT_THROW(MultiplyCounts(-1, -1), Error);
  EXPECT_THROW(MultiplyCounts(kMax, 2), Error);
}

TEST(RoundUp, GivesTheNextMultiple) {
  EXPECT_EQ(RoundUp(0, 64), 0);
  EXPECT_EQ(RoundUp(1, 64), 64);
  EXPECT_EQ(RoundUp(64, 64), 64);
  EXPECT_EQ(RoundUp(65, 64), 128);
}

}  // namespace
}  // namespace skiff
