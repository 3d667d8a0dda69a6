// The sort of rows scans the counts of more tiles than a block has threads, which takes lists of
// more than half a million rows. Skipped if there is no device.
#include <gtest/gtest.h>

#ifdef WITH_CUDA

#include <cstdint>
#include <vector>

#include "memory/cuda_device.h"
#include "tests/operators/tensor/scan_counts.h"

namespace skiff::harness {
namespace {

constexpr uint32_t kDigits = 256;

uint32_t CountOf(uint32_t digit, uint32_t tile) { return (digit * 31 + tile * 17) % 2049; }

TEST(ScanCounts, IsThatOfTheHost) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no device";
  // One turn of the loop, two, and three, the last of one tile.
  for (const uint32_t tiles : {2U, 256U, 300U, 513U}) {
    std::vector<uint32_t> counts;
    std::vector<uint32_t> expected;
    std::vector<uint32_t> totals;
    for (uint32_t digit = 0; digit < kDigits; ++digit) {
      uint32_t total = 0;
      for (uint32_t tile = 0; tile < tiles; ++tile) {
        counts.push_back(CountOf(digit, tile));
        expected.push_back(total);
        total += counts.back();
      }
      totals.push_back(total);
    }
    expected.insert(expected.end(), totals.begin(), totals.end());
    const std::vector<uint32_t> found = ScanCountsOnDevice(counts, tiles);
    ASSERT_EQ(found.size(), expected.size()) << tiles << " tiles";
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i], expected[i]) << tiles << " tiles, at " << i;
    }
  }
}

}  // namespace
}  // namespace skiff::harness

#else

TEST(ScanCounts, IsBuilt) { GTEST_SKIP() << "built without CUDA"; }

#endif
