#include "memory/allocator_statistics.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string_view>
#include <thread>

namespace skiff {
namespace {

TEST(MemoryTag, HasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kMemoryTagCount; ++i) {
    names.insert(MemoryTagName(static_cast<MemoryTag>(i)));
  }
  EXPECT_EQ(names.size(), kMemoryTagCount);
  EXPECT_EQ(names.count(""), 0);
  EXPECT_EQ(MemoryTagName(MemoryTag::kFeedOrFetch), "feed_or_fetch");
}

TEST(MemoryTagScope, HoldsForItsThreadUntilItEnds) {
  EXPECT_EQ(CurrentMemoryTag(), MemoryTag::kOther);
  {
    const MemoryTagScope outer(MemoryTag::kParameter);
    {
      const MemoryTagScope inner(MemoryTag::kGradient);
      EXPECT_EQ(CurrentMemoryTag(), MemoryTag::kGradient);
    }
    EXPECT_EQ(CurrentMemoryTag(), MemoryTag::kParameter);
    std::thread([] { EXPECT_EQ(CurrentMemoryTag(), MemoryTag::kOther); }).join();
  }
  EXPECT_EQ(CurrentMemoryTag(), MemoryTag::kOther);
}

TEST(AllocatorStatistics, PrintsTagsThatWereUsed) {
  AllocatorStatistics statistics{.live_bytes = 10,
                                 .peak_bytes = 20,
                                 .allocations = 3,
                                 .reserved_bytes = 64,
                                 .peak_reserved_bytes = 128,
                                 .live_blocks = 1,
                                 .system_allocations = 2,
                                 .system_releases = 1,
                                 .limit_bytes = 1000};
  statistics.by_tag[static_cast<size_t>(MemoryTag::kArena)] = {
      .live_bytes = 10, .peak_bytes = 20, .allocations = 3};
  std::ostringstream text;
  text << statistics;
  EXPECT_EQ(text.str(),
            "live 10 bytes in 1 blocks (peak 20), reserved 64 (peak 128, limit 1000), 3 "
            "allocations, 2 from the system, 1 given back\n"
            "  arena: live 10 (peak 20), 3 allocations\n");
}

}  // namespace
}  // namespace skiff
