#include "operators/optimizer/kernels/list_walk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "tests/harness/thread_count.h"

namespace skiff {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(ForEachBlock, CoversEachElementOnceInBlocksOfLimitedSize) {
  for (int threads : {1, 3}) {
    const harness::ThreadCount scope(threads);
    constexpr int64_t kElements = 5 * kListGrain + 3;
    std::vector<int> visits(kElements);
    std::vector<int64_t> block_sizes(kElements);
    ForEachBlock(kElements, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        ++visits[static_cast<size_t>(i)];
        block_sizes[static_cast<size_t>(i)] = end - begin;
      }
    });
    EXPECT_THAT(visits, Each(1));
    EXPECT_THAT(block_sizes, Each(::testing::AllOf(::testing::Gt(0), ::testing::Le(kListBlock))));
  }
}

TEST(ForEachBlock, CallsNothingWithoutElements) {
  ForEachBlock(0, [](int64_t, int64_t) { ADD_FAILURE(); });
}

// Arrays without elements are skipped, wherever they are in the list.
TEST(ForEachArray, SplitsARangeByArrays) {
  const std::vector<int64_t> begins = {0, 0, 4, 4, 10, 12, 12};
  std::vector<std::array<int64_t, 3>> shares;
  ForEachArray(begins, 2, 11, [&](size_t array, int64_t first, int64_t last) {
    shares.push_back({static_cast<int64_t>(array), first, last});
  });
  using Share = std::array<int64_t, 3>;
  EXPECT_THAT(shares, ElementsAre(Share{1, 2, 4}, Share{3, 0, 6}, Share{4, 0, 1}));
}

}  // namespace
}  // namespace skiff
