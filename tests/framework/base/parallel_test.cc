#include "framework/base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/harness/thread_count.h"

namespace skiff {
namespace {

using harness::ThreadCount;
using Part = std::pair<int64_t, int64_t>;

// In order of their begin.
std::vector<Part> PartsOf(int64_t count, int64_t grain) {
  std::mutex mutex;
  std::vector<Part> parts;
  ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    parts.emplace_back(begin, end);
  });
  std::sort(parts.begin(), parts.end());
  return parts;
}

TEST(ParallelFor, CoversEverythingWithFewerThreadsThanAskedFor) {
  const ThreadCount threads(4);
  std::vector<Part> parts;
#pragma omp teams num_teams(1) thread_limit(1)
  parts = PartsOf(1000, 1);
  EXPECT_EQ(parts, (std::vector<Part>{{0, 250}, {250, 500}, {500, 750}, {750, 1000}}));
}

TEST(ParallelFor, VisitsEveryIndexOnce) {
  for (int threads : {1, 2, 3, 7}) {
    const ThreadCount with_threads(threads);
    for (int64_t count : {1, 2, 15, 16, 17, 1000}) {
      for (int64_t grain : {1, 8, 64}) {
        std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
        ParallelFor(count, grain, [&visits](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
        });
        for (const auto& visit : visits) ASSERT_EQ(visit, 1) << count << " by " << grain;
      }
    }
  }
}

TEST(ParallelFor, DoesNothingForNothing) {
  EXPECT_TRUE(PartsOf(0, 1).empty());
  EXPECT_TRUE(PartsOf(-5, 1).empty());
}

TEST(ParallelFor, CutsAtMultiplesOfTheGrain) {
  const ThreadCount with_threads(3);
  for (const Part& part : PartsOf(1000, 16)) EXPECT_EQ(part.first % 16, 0);
}

TEST(ParallelFor, PartitionsTheSameWayEachTime) {
  const ThreadCount with_threads(4);
  const std::vector<Part> first = PartsOf(12345, 8);
  for (int run = 0; run < 10; ++run) EXPECT_EQ(PartsOf(12345, 8), first);
}

TEST(ParallelFor, StaysOnTheCallingThreadForOneGrain) {
  const ThreadCount with_threads(4);
  EXPECT_EQ(PartsOf(16, 16), (std::vector<Part>{{0, 16}}));
}

TEST(ParallelFor, StaysOnItsThreadInsideAParallelRegion) {
  const ThreadCount with_threads(2);
  std::atomic<int> inner_calls = 0;
  ParallelFor(2, 1, [&inner_calls](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      ParallelFor(100, 1, [&inner_calls](int64_t, int64_t) { ++inner_calls; });
    }
  });
  // Unless the machine gives one thread only, both outer calls are in a parallel region.
  EXPECT_EQ(inner_calls, 2);
}

}  // namespace
}  // namespace skiff
