#include "tools/benchmark/process_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace skiff {
namespace {

TEST(ProcessMemory, RisesWithWhatIsTouchedAndRemembersItsPeak) {
  const double before = RssMegabytes();
  EXPECT_GT(before, 0);
  {
    const std::vector<char> block(64 << 20, 1);
    EXPECT_GE(RssMegabytes(), before + 60);
  }
  EXPECT_GE(PeakRssMegabytes(), before + 60);
}

TEST(ProcessMemory, KnowsWhatIsLeft) { EXPECT_GT(AvailableMegabytes(), 0); }

}  // namespace
}  // namespace skiff
