#include "framework/analysis/running_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/base/str_cat.h"
#include "framework/ir/text.h"
#include "framework/op/registry.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Of a batch norm with running statistics m and v and these attributes.
std::vector<std::string> Kept(const std::string& attrs) {
  const auto program = ParseProgramText(StrCat(R"(program { block 0 {
    var x float32 [4, 3]
    var y float32 [4, 3]
    param s float32 [3] persistable
    param b float32 [3] persistable
    var m float32 [3] persistable
    var v float32 [3] persistable
    {Y: [y], MeanOut: [m], VarianceOut: [v]} = batch_norm(X: [x], Scale: [s], Bias: [b], Mean: [m], Variance: [v]) {)",
                                               attrs, "} } }"));
  const Op& op = *program->root()->ops()[0];
  return KeptRunningState(DefaultOpRegistry().Get(op.type), op);
}

TEST(RunningState, StaysInTestModeAndWithGlobalStatistics) {
  EXPECT_THAT(Kept("is_test = false"), IsEmpty());
  EXPECT_THAT(Kept("is_test = true"), ElementsAre("m", "v"));
  EXPECT_THAT(Kept("is_test = true, trainable_statistics = true"), IsEmpty());
  EXPECT_THAT(Kept("use_global_stats = true"), ElementsAre("m", "v"));
}

// Flags of old files, in programs as they were read: a run takes 0 and 1 of any type for a bool.
TEST(RunningState, TakesNumbersForFlagsAsARunDoes) {
  EXPECT_THAT(Kept("is_test = 1"), ElementsAre("m", "v"));
  EXPECT_THAT(Kept("is_test = long 1"), ElementsAre("m", "v"));
  EXPECT_THAT(Kept("is_test = 0"), IsEmpty());
  // A run refuses this one.
  EXPECT_THAT(Kept("is_test = 2"), IsEmpty());
}

}  // namespace
}  // namespace skiff
