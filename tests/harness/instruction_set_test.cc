#include "tests/harness/instruction_set.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <algorithm>

namespace skiff::harness {
namespace {

class InstructionSetTest : public ::testing::TestWithParam<int64_t> {};

// One test for each that the kernels are compiled for: those that this machine lacks, and on which
// therefore no case ran, are counted as skipped.
INSTANTIATE_TEST_SUITE_P(Compiled, InstructionSetTest,
                         ::testing::ValuesIn(CompiledInstructionSets()),
                         [](const auto& info) { return InstructionSetName(info.param); });

TEST_P(InstructionSetTest, IsTheBestThatLimitedKernelsSee) {
  const std::vector<int64_t> here = InstructionSets();
  if (std::count(here.begin(), here.end(), GetParam()) == 0) {
    GTEST_SKIP() << "this machine has no " << InstructionSetName(GetParam());
  }
  const int64_t before = hwy::SupportedTargets();
  {
    const InstructionSetLimit limit(GetParam());
    EXPECT_EQ(InstructionSets().front(), GetParam());
  }
  EXPECT_EQ(hwy::SupportedTargets(), before);
}

}  // namespace
}  // namespace skiff::harness
