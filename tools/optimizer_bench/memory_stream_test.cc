#include "tools/optimizer_bench/memory_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/base/error.h"

namespace skiff {
namespace {

using ::testing::Each;

// More than a thread's share, and no multiple of a vector.
constexpr int64_t kElements = 20001;
constexpr float kFactor = 1.0f / (1 << 20);

TEST(MemoryStream, CountsWhatPassesMove) {
  EXPECT_EQ(BytesPerElement({{.reads = 1, .updates = 3}}), 28);
  EXPECT_EQ(BytesPerElement({{.reads = 2, .updates = 0}, {.reads = 1, .updates = 2}}), 28);
  EXPECT_EQ(ArrayCount({{.reads = 2, .updates = 2}, {.reads = 2, .updates = 1}}), 4);
  EXPECT_EQ(MemoryStream({{.reads = 1, .updates = 1}}, 10).bytes(), 120);
}

TEST(MemoryStream, UpdatesEveryElementOfWhatItUpdates) {
  for (const int reads : {1, 2}) {
    for (const int updates : {1, 2, 3}) {
      MemoryStream stream({{.reads = reads, .updates = updates}}, kElements);
      stream.Run();
      const float updated = 1.0f + static_cast<float>(reads) * kFactor;
      for (int i = 0; i < reads + updates; ++i) {
        EXPECT_THAT(stream.array(static_cast<size_t>(i)).values<float>(),
                    Each(i < reads ? 1.0f : updated))
            << reads << " " << updates << " " << i;
      }
      EXPECT_EQ(stream.sum(), 0);
    }
  }
}

TEST(MemoryStream, AddsUpWhatItOnlyReads) {
  MemoryStream stream({{.reads = 1, .updates = 0}, {.reads = 2, .updates = 0}}, kElements);
  stream.Run();
  EXPECT_EQ(stream.sum(), 3 * kElements);
  stream.Run();
  EXPECT_EQ(stream.sum(), 6 * kElements);
}

TEST(MemoryStream, RefusesOtherNumbersOfArrays) {
  for (const Sweep sweep : {Sweep{.reads = 0, .updates = 1}, Sweep{.reads = 3, .updates = 1},
                            Sweep{.reads = 1, .updates = 5}, Sweep{.reads = 1, .updates = -1}}) {
    EXPECT_THROW(MemoryStream({sweep}, 1), Error);
  }
}

}  // namespace
}  // namespace skiff
