#include "framework/base/cpu_features.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

#include "framework/base/error.h"

namespace skiff {
namespace {

using ::testing::ExitedWithCode;

// A process reads the environment once: each case is one of its own, begun anew.
class InstructionSetLimitTest : public ::testing::Test {
 protected:
  InstructionSetLimitTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  // Exits with the block of channels, or 99 where the limit is refused.
  [[noreturn]] static void ExitWithChannelBlock(const char* limit) {
    setenv("SKIFF_MAX_ISA", limit, 1);
    try {
      std::_Exit(PreferredChannelBlock());
    } catch (const Error& error) {
      std::fputs(error.what(), stderr);
      std::_Exit(error.code() == ErrorCode::kInvalidArgument ? 99 : 98);
    }
  }
  static int BlockOf(InstructionSet set) {
    return set >= InstructionSet::kAvx512 ? 16 : set == InstructionSet::kAvx2 ? 8 : 1;
  }
};

using InstructionSetLimitDeathTest = InstructionSetLimitTest;

TEST_F(InstructionSetLimitDeathTest, BlocksFollowTheLimitAsFarAsTheProcessorGoes) {
  for (const InstructionSet set : {InstructionSet::kBaseline, InstructionSet::kAvx2,
                                   InstructionSet::kAvx512, InstructionSet::kAvx512Bf16}) {
    const int block = BlockOf(std::min(set, ProcessorInstructionSet()));
    EXPECT_EXIT(ExitWithChannelBlock(std::string(InstructionSetName(set)).c_str()),
                ExitedWithCode(block), "");
  }
}

TEST_F(InstructionSetLimitDeathTest, WithoutALimitItIsTheProcessorsBlock) {
  EXPECT_EXIT(ExitWithChannelBlock(""), ExitedWithCode(BlockOf(ProcessorInstructionSet())), "");
}

TEST_F(InstructionSetLimitDeathTest, RefusesWhatIsNoInstructionSet) {
  EXPECT_EXIT(ExitWithChannelBlock("AVX"), ExitedWithCode(99),
              "SKIFF_MAX_ISA=\"AVX\": expected baseline, avx2, avx512 or avx512_bf16");
}

TEST(CpuModelName, IsTheOneThatTheSystemTells) {
  std::ifstream file("/proc/cpuinfo");
  std::set<std::string> names;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name\t: ")) names.insert(line.substr(13));
  }
  if (names.empty()) GTEST_SKIP() << "the system doesn't tell";
  EXPECT_TRUE(names.contains(CpuModelName())) << CpuModelName() << " instead of " << *names.begin();
}

}  // namespace
}  // namespace skiff
