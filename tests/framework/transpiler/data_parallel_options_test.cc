#include "framework/transpiler/api/data_parallel_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::HasSubstr;

TEST(DataParallelOptions, OrdersOfSumsHaveNames) {
  for (const SumOrder order : {SumOrder::kRanks, SumOrder::kFast}) {
    EXPECT_EQ(SumOrderFromName(SumOrderName(order)), order);
  }
  EXPECT_THAT(InvalidArgumentText([] { SumOrderFromName("slow"); }),
              HasSubstr("\"slow\", expected ranks or fast"));
}

TEST(DataParallelOptions, OverlapsHaveNames) {
  for (const Overlap overlap : {Overlap::kAuto, Overlap::kOn, Overlap::kOff}) {
    EXPECT_EQ(OverlapFromName(OverlapName(overlap)), overlap);
  }
  EXPECT_THAT(InvalidArgumentText([] { OverlapFromName("always"); }),
              HasSubstr("\"always\", expected auto, on or off"));
}

}  // namespace
}  // namespace skiff
