#include "framework/tensor/dims_agree.h"

#include <gtest/gtest.h>

#include <vector>

namespace skiff {
namespace {

TEST(DimsAgree, WhereDimsAreEqualOrUnknown) {
  using Dims = std::vector<int64_t>;
  EXPECT_TRUE(DimsAgree(Dims{}, Dims{}));
  EXPECT_TRUE(DimsAgree(Dims{2, 3}, Dims{2, 3}));
  EXPECT_TRUE(DimsAgree(Dims{-1, 3}, Dims{2, -1}));
  EXPECT_FALSE(DimsAgree(Dims{2, 3}, Dims{3, 2}));
  EXPECT_FALSE(DimsAgree(Dims{-1, 3}, Dims{2, 0}));
  EXPECT_FALSE(DimsAgree(Dims{2}, Dims{2, 1}));
  EXPECT_FALSE(DimsAgree(Dims{-1}, Dims{}));
}

}  // namespace
}  // namespace skiff
