#include "operators/optimizer/kernels/sparse_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/base/error.h"
#include "operators/common/merged_rows.h"
#include "tests/harness/array_tensor.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kHeight = 6;
constexpr int64_t kWidth = 2;

// The ranges that selected rows cut a parameter of [kHeight, kWidth] into.
class SparseRanges {
 public:
  // Slot i holds {10 i, 10 i + 1}.
  SparseRanges(const std::vector<int64_t>& rows, SparseRows which)
      : workspace_(static_cast<size_t>(MergedRowsWorkspaceBytes(Count(rows))) / sizeof(int64_t)),
        sums_(rows.size() * kWidth),
        param_(kHeight * kWidth) {
    harness::Array grad{.shape = {Count(rows), kWidth}, .rows = rows, .height = kHeight};
    for (int64_t i = 0; i < Count(rows); ++i) {
      for (int64_t k = 0; k < kWidth; ++k) {
        grad.values.push_back(10 * static_cast<double>(i) + static_cast<double>(k));
      }
    }
    grad_ = harness::ToTensor(grad, DType::kFloat32);
    UpdateRange<float> whole;
    whole.param = param_.data();
    whole.count = kHeight * kWidth;
    AppendRowRanges(whole, grad_, grad_.data<float>(), which, workspace_.data(), sums_.data(),
                    &ranges_);
  }

  // Each range: its first element of the parameter, its number of elements, and its gradient if it
  // has one.
  std::vector<std::string> Texts() const {
    std::vector<std::string> texts;
    for (size_t k = 0; k < ranges_.size(); ++k) {
      const UpdateRange<float>& range = ranges_[k];
      std::string text = StrCat(range.param - param_.data(), "+", range.count, ":");
      for (int64_t i = 0; range.grad != nullptr && i < range.count; ++i) {
        text += StrCat(" ", range.grad[i]);
      }
      texts.push_back(text);
    }
    return texts;
  }

 private:
  static int64_t Count(const std::vector<int64_t>& rows) {
    return static_cast<int64_t>(rows.size());
  }

  std::vector<int64_t> workspace_;
  std::vector<float> sums_;
  std::vector<float> param_;
  Tensor grad_;
  RangeList<float> ranges_;
};

TEST(AppendRowRanges, MakesARangeOfEachRowWithTheSumOfItsSlots) {
  const SparseRanges ranges({4, 1, -1, 4}, SparseRows::kTouched);
  EXPECT_THAT(ranges.Texts(), ElementsAre("2+2: 10 11", "8+2: 30 32"));
}

TEST(AppendRowRanges, MakesOneRangeOfTheRowsBetweenForAllRows) {
  const SparseRanges ranges({4, 1, -1, 4}, SparseRows::kAll);
  EXPECT_THAT(ranges.Texts(), ElementsAre("0+2:", "2+2: 10 11", "4+4:", "8+2: 30 32", "10+2:"));
}

TEST(AppendRowRanges, LeavesNoEmptyRangeAtTheEndsOrBetweenNeighbours) {
  const SparseRanges ranges({0, 1, 5}, SparseRows::kAll);
  EXPECT_THAT(ranges.Texts(), ElementsAre("0+2: 0 1", "2+2: 10 11", "4+6:", "10+2: 20 21"));
}

TEST(AppendRowRanges, IsTheWholeParameterOrNothingWithoutRows) {
  EXPECT_THAT(SparseRanges({-1}, SparseRows::kAll).Texts(), ElementsAre("0+12:"));
  EXPECT_THAT(SparseRanges({-1}, SparseRows::kTouched).Texts(), ElementsAre());
}

TEST(AppendRowRanges, RefusesARowThatTheParameterLacks) {
  try {
    const SparseRanges ranges({1, kHeight}, SparseRows::kAll);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfRange);
    EXPECT_THAT(std::string(error.what()), HasSubstr("in slot 1, expected one in [0, 6)"));
  }
}

}  // namespace
}  // namespace skiff
