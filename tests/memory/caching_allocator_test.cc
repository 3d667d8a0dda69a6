#include "memory/caching_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "memory/out_of_memory_error.h"
#include "tests/memory/fake_memory.h"
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace skiff {
namespace {

using ::testing::HasSubstr;

char* Bytes(void* address) { return static_cast<char*>(address); }

// An allocator of one class on a FakeSource, without redzones, so that sizes are the same under
// AddressSanitizer.
struct FixtureOptions {
  FakeSource::Options source = {};
  BlockClass block_class = {};
  int64_t max_cached_bytes = CachingOptions::kUnbounded;
  int64_t slack_beyond_peak_bytes = CachingOptions::kUnbounded;
  bool has_streams = false;
};

class Fixture {
 public:
  explicit Fixture(const FixtureOptions& options = {})
      : source(std::make_shared<FakeSource>(options.source)) {
    BlockClass block_class = options.block_class;
    block_class.source = source;
    auto owned_events = options.has_streams ? std::make_unique<FakeEvents>() : nullptr;
    events = owned_events.get();
    allocator = std::make_unique<CachingAllocator>(
        CachingOptions{.name = "fake",
                       .classes = {block_class},
                       .max_cached_bytes = options.max_cached_bytes,
                       .slack_beyond_peak_bytes = options.slack_beyond_peak_bytes,
                       .redzone_bytes = 0},
        std::move(owned_events));
  }

  char* Allocate(int64_t bytes, FakeStream* stream = nullptr) {
    return Bytes(allocator->Allocate(bytes, {.stream = stream}));
  }
  void Free(char* block, int64_t bytes) { allocator->Free(block, bytes); }
  int64_t reserved_bytes() const { return allocator->statistics().reserved_bytes; }

  std::shared_ptr<FakeSource> source;
  FakeEvents* events = nullptr;
  std::unique_ptr<CachingAllocator> allocator;
};

MemoryShortage ShortageOf(Fixture& fixture, int64_t bytes, const AllocationOptions& options = {}) {
  try {
    fixture.allocator->Allocate(bytes, options);
  } catch (const OutOfMemoryError& error) {
    EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
    return error.shortage();
  }
  ADD_FAILURE() << bytes << " bytes were given";
  return {};
}

// ---- reuse of freed blocks

TEST(CachingAllocator, GivesAFreedBlockAgainWithoutAskingTheSystem) {
  Fixture f;
  char* first = f.Allocate(1000);
  f.Free(first, 1000);
  EXPECT_EQ(f.Allocate(900), first);
  EXPECT_EQ(f.source->reservations, 1);
  f.Free(first, 900);
}

TEST(CachingAllocator, TakesTheSmallestFreeBlockThatFits) {
  Fixture f({.block_class = {.segment_bytes = 64 * 100}});
  char* large = f.Allocate(640);
  char* between = f.Allocate(64);
  char* medium = f.Allocate(320);
  char* after = f.Allocate(64);
  f.Free(large, 640);
  f.Free(medium, 320);
  EXPECT_EQ(f.Allocate(256), medium);
  EXPECT_EQ(f.Allocate(320), large);
  f.Free(between, 64);
  f.Free(after, 64);
  f.Free(medium, 256);
  f.Free(large, 320);
}

TEST(CachingAllocator, SplitsBlocksAndJoinsThemAgain) {
  Fixture f;
  char* whole = f.Allocate(64 * 30);
  f.Free(whole, 64 * 30);
  std::vector<char*> thirds;
  for (int i = 0; i < 3; ++i) thirds.push_back(f.Allocate(640));
  EXPECT_EQ(thirds, (std::vector<char*>{whole, whole + 640, whole + 1280}));
  // The middle one last: it merges with both neighbours.
  for (int i : {0, 2, 1}) f.Free(thirds[static_cast<size_t>(i)], 640);
  EXPECT_EQ(f.Allocate(64 * 30), whole);
  EXPECT_EQ(f.source->reservations, 1);
  f.Free(whole, 64 * 30);
}

TEST(CachingAllocator, ParksBlocksForRequestsOfTheirSize) {
  const auto source = std::make_shared<FakeSource>();
  CachingAllocator allocator({.name = "fake",
                              .classes = {{.source = source,
                                           .max_block_bytes = 1920,
                                           .segment_bytes = 1920,
                                           .max_parked_bytes = 1920},
                                          {.source = source}},
                              .redzone_bytes = 0});
  char* a = Bytes(allocator.Allocate(640));
  char* b = Bytes(allocator.Allocate(640));
  allocator.Free(a, 640);
  allocator.Free(b, 640);
  // The block that was parked last, not the lowest one.
  EXPECT_EQ(allocator.Allocate(600), b);
  allocator.Free(b, 600);
  // All are merged before more memory is taken.
  EXPECT_EQ(allocator.Allocate(1920), a);
  EXPECT_EQ(source->reservations, 1);
  allocator.Free(a, 1920);
  allocator.ReleaseCached();
  EXPECT_EQ(source->in_use_bytes, 0);
}

TEST(CachingAllocator, KeepsClassesApart) {
  const auto source = std::make_shared<FakeSource>();
  CachingAllocator allocator(
      {.name = "fake",
       .classes = {{.source = source, .max_block_bytes = 1000, .segment_bytes = 64000},
                   {.source = source}},
       .redzone_bytes = 0});
  void* large = allocator.Allocate(6400);
  void* small = allocator.Allocate(640);
  allocator.Free(large, 6400);
  // A small block that stays live doesn't split the large one.
  void* another = allocator.Allocate(640);
  EXPECT_EQ(source->SerialOf(small), source->SerialOf(another));
  EXPECT_EQ(allocator.Allocate(6400), large);
  allocator.Free(large, 6400);
  allocator.Free(small, 640);
  allocator.Free(another, 640);
}

TEST(CachingAllocator, AlignsBlocksAndKeepsTheGapsForOthers) {
  Fixture f({.block_class = {.rounding = 64, .alignment = 4096}});
  char* whole = f.Allocate(8 * 4096);
  f.Free(whole, 8 * 4096);
  char* first = f.Allocate(100);
  char* second = f.Allocate(100);
  EXPECT_EQ(first, whole);
  EXPECT_EQ(second, whole + 4096);
  f.Free(first, 100);
  f.Free(second, 100);
  EXPECT_EQ(f.Allocate(8 * 4096), whole);
  f.Free(whole, 8 * 4096);
}

TEST(CachingAllocator, GivesNullForNothingAndRefusesNegativeCounts) {
  Fixture f;
  EXPECT_EQ(f.Allocate(0), nullptr);
  f.Free(nullptr, 0);
  EXPECT_EQ(f.allocator->statistics().allocations, 0);
  EXPECT_THROW(f.Allocate(-1), Error);
}

// ---- giving back

TEST(CachingAllocator, GivesEverythingUnusedBackWhenAsked) {
  Fixture f;
  char* kept = f.Allocate(640);
  char* freed = f.Allocate(6400);
  f.Free(freed, 6400);
  EXPECT_EQ(f.reserved_bytes(), 7040);
  f.allocator->ReleaseCached();
  EXPECT_EQ(f.reserved_bytes(), 640);
  EXPECT_EQ(f.source->in_use_bytes, 640);
  f.Free(kept, 640);
}

TEST(CachingAllocator, KeepsNoMoreThanItMay) {
  Fixture f({.max_cached_bytes = 1000});
  char* a = f.Allocate(640);
  char* b = f.Allocate(704);
  f.Free(a, 640);
  EXPECT_EQ(f.source->releases, 0);
  f.Free(b, 704);
  EXPECT_EQ(f.source->releases, 1);
  EXPECT_LE(f.reserved_bytes(), 1000);
}

// A dead arena and the larger one that replaces it are never reserved at the same time.
TEST(CachingAllocator, GivesBackBeforeItTakesMoreThanThePeakNeeded) {
  Fixture f({.slack_beyond_peak_bytes = 0});
  char* arena = f.Allocate(64000);
  f.Free(arena, 64000);
  arena = f.Allocate(128000);
  EXPECT_EQ(f.source->in_use_bytes, 128000);
  EXPECT_EQ(f.allocator->statistics().peak_reserved_bytes, 128000);
  f.Free(arena, 128000);
  // As much may be cached as was once in blocks at the same time: 128000 bytes.
  arena = f.Allocate(64000);
  EXPECT_EQ(f.source->reservations, 2);
  f.Free(arena, 64000);
}

TEST(CachingAllocator, TriesAgainAfterGivingBack) {
  Fixture f({.source = {.capacity_bytes = 10000}});
  char* small = f.Allocate(6400);
  f.Free(small, 6400);
  char* large = f.Allocate(9600);
  EXPECT_EQ(f.source->in_use_bytes, 9600);
  f.Free(large, 9600);
}

TEST(CachingAllocator, TakesSmallerSegmentsWhereUsualOnesDontFit) {
  Fixture f({.source = {.capacity_bytes = 10000}, .block_class = {.segment_bytes = 6400}});
  char* a = f.Allocate(6400);
  char* b = f.Allocate(640);
  EXPECT_EQ(f.source->in_use_bytes, 7040);
  f.Free(a, 6400);
  f.Free(b, 640);
}

TEST(CachingAllocator, TakesFreeMemoryOfOtherClassesBeforeItFails) {
  const auto source = std::make_shared<FakeSource>(FakeSource::Options{.capacity_bytes = 6400});
  CachingAllocator allocator(
      {.name = "fake",
       .classes = {{.source = source, .max_block_bytes = 1000}, {.source = source}},
       .redzone_bytes = 0});
  char* large = Bytes(allocator.Allocate(6400));
  allocator.Free(large, 6400);
  void* half = allocator.Allocate(3200);
  void* small = allocator.Allocate(640);
  EXPECT_EQ(small, large + 3200);
  allocator.Free(half, 3200);
  allocator.Free(small, 640);
  EXPECT_EQ(allocator.Allocate(6400), large);
  allocator.Free(large, 6400);
}

// ---- memory committed to reserved addresses

FixtureOptions Committing() {
  return {.source = {.commit_granularity = 4096}, .block_class = {.segment_bytes = 100 * 4096}};
}

TEST(CachingAllocator, CommitsWhatBlocksCover) {
  Fixture f(Committing());
  char* a = f.Allocate(100);
  EXPECT_EQ(f.reserved_bytes(), 4096);
  char* b = f.Allocate(5000);
  EXPECT_EQ(b, a + 128);
  EXPECT_EQ(f.reserved_bytes(), 2 * 4096);
  EXPECT_TRUE(f.source->Backs(b, 5000));
  EXPECT_EQ(f.source->reservations, 1);
  f.Free(a, 100);
  f.Free(b, 5000);
}

// An expandable segment: the second, larger arena costs the difference.
TEST(CachingAllocator, GrowsAFreeBlockAtTheEndOfASegment) {
  Fixture f(Committing());
  char* arena = f.Allocate(10 * 4096);
  f.Free(arena, 10 * 4096);
  EXPECT_EQ(f.Allocate(12 * 4096), arena);
  EXPECT_EQ(f.reserved_bytes(), 12 * 4096);
  EXPECT_EQ(f.source->decommits, 0);
  f.Free(arena, 12 * 4096);
}

TEST(CachingAllocator, GivesBackTheMemoryOfHoles) {
  Fixture f(Committing());
  char* before = f.Allocate(100);
  char* hole = f.Allocate(10 * 4096);
  char* after = f.Allocate(100);
  std::memset(before, 1, 100);
  std::memset(after, 2, 100);
  f.Free(hole, 10 * 4096);
  f.allocator->ReleaseCached();
  // The pages that it shares with its neighbours stay.
  EXPECT_EQ(f.reserved_bytes(), 2 * 4096);
  EXPECT_TRUE(f.source->Backs(before, 100) && f.source->Backs(after, 100));
  EXPECT_EQ(before[99], 1);
  EXPECT_EQ(after[99], 2);
  // The addresses are used again, with new memory.
  EXPECT_EQ(f.Allocate(10 * 4096), hole);
  EXPECT_TRUE(f.source->Backs(hole, 10 * 4096));
  f.Free(before, 100);
  f.Free(hole, 10 * 4096);
  f.Free(after, 100);
}

TEST(CachingAllocator, GivesBackHolesWhenTheSystemHasNoMore) {
  FixtureOptions options = Committing();
  options.source.capacity_bytes = 20 * 4096;
  Fixture f(options);
  char* hole = f.Allocate(10 * 4096);
  char* after = f.Allocate(4096);
  f.Free(hole, 10 * 4096);
  char* large = f.Allocate(15 * 4096);
  EXPECT_EQ(f.source->in_use_bytes, 16 * 4096);
  f.Free(after, 4096);
  f.Free(large, 15 * 4096);
}

// ---- the limit

TEST(CachingAllocator, ReservesNoMoreThanTheLimit) {
  Fixture f;
  f.allocator->SetLimit(10000);
  char* a = f.Allocate(6400);
  const MemoryShortage shortage = ShortageOf(f, 6400, {.tag = MemoryTag::kArena});
  EXPECT_EQ(shortage.requested_bytes, 6400);
  EXPECT_EQ(shortage.live_bytes, 6400);
  EXPECT_EQ(shortage.reserved_bytes, 6400);
  EXPECT_EQ(shortage.limit_bytes, 10000);
  EXPECT_EQ(shortage.tag, MemoryTag::kArena);
  EXPECT_EQ(shortage.reason, "");
  // The program can continue with less.
  char* b = f.Allocate(3200);
  f.Free(a, 6400);
  f.Free(b, 3200);
}

TEST(CachingAllocator, GivesCachedMemoryBackToStayWithinTheLimit) {
  Fixture f;
  f.allocator->SetLimit(10000);
  char* a = f.Allocate(6400);
  f.Free(a, 6400);
  char* b = f.Allocate(9600);
  EXPECT_EQ(f.reserved_bytes(), 9600);
  f.Free(b, 9600);
}

TEST(CachingAllocator, TakesSmallerSegmentsNearTheLimit) {
  Fixture f({.block_class = {.segment_bytes = 6400}});
  f.allocator->SetLimit(1000);
  char* a = f.Allocate(640);
  EXPECT_EQ(f.reserved_bytes(), 640);
  f.Free(a, 640);
}

TEST(CachingAllocator, FallsBelowANewLimitAsFarAsItCan) {
  Fixture f;
  char* live = f.Allocate(6400);
  char* cached = f.Allocate(3200);
  f.Free(cached, 3200);
  f.allocator->SetLimit(1000);
  EXPECT_EQ(f.reserved_bytes(), 6400);
  EXPECT_THROW(f.Allocate(64), OutOfMemoryError);
  f.Free(live, 6400);
  live = f.Allocate(640);
  f.Free(live, 640);
  f.allocator->SetLimit(0);
  live = f.Allocate(64000);
  f.Free(live, 64000);
  EXPECT_THROW(f.allocator->SetLimit(-1), Error);
}

TEST(CachingAllocator, SaysWhyThereIsNoMore) {
  Fixture f({.source = {.capacity_bytes = 1000}});
  char* a = f.Allocate(640);
  try {
    f.Allocate(640);
    ADD_FAILURE() << "1280 of 1000 bytes were given";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "out of memory on fake: 640 bytes asked for (other), 640 live, 640 reserved: the "
                 "fake has no more");
  }
  f.allocator->SetLimit(1000);
  try {
    const MemoryTagScope scope(MemoryTag::kGradient);
    f.Allocate(640);
    ADD_FAILURE() << "1280 of 1000 bytes were given";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "out of memory on fake: 640 bytes asked for (gradient), 640 live, 640 reserved: "
                 "expected at most the memory limit of 1000 bytes");
  }
  f.Free(a, 640);
  EXPECT_THAT(ShortageOf(f, std::numeric_limits<int64_t>::max()).reason, HasSubstr("no machine"));
}

// ---- statistics

TEST(CachingAllocator, CountsByTag) {
  Fixture f;
  char* parameter = Bytes(f.allocator->Allocate(100, {.tag = MemoryTag::kParameter}));
  char* other = f.Allocate(10);
  {
    const MemoryTagScope scope(MemoryTag::kArena);
    f.Free(f.Allocate(1000), 1000);
  }
  f.Free(parameter, 100);
  parameter = Bytes(f.allocator->Allocate(50, {.tag = MemoryTag::kParameter}));
  const AllocatorStatistics statistics = f.allocator->statistics();
  EXPECT_EQ(statistics.live_bytes, 60);
  EXPECT_EQ(statistics.live_blocks, 2);
  EXPECT_EQ(statistics.peak_bytes, 1110);
  EXPECT_EQ(statistics.allocations, 4);
  EXPECT_EQ(statistics.of(MemoryTag::kParameter).live_bytes, 50);
  EXPECT_EQ(statistics.of(MemoryTag::kParameter).peak_bytes, 100);
  EXPECT_EQ(statistics.of(MemoryTag::kParameter).allocations, 2);
  EXPECT_EQ(statistics.of(MemoryTag::kArena).live_bytes, 0);
  EXPECT_EQ(statistics.of(MemoryTag::kArena).peak_bytes, 1000);
  EXPECT_EQ(statistics.of(MemoryTag::kOther).live_bytes, 10);
  f.Free(parameter, 50);
  f.Free(other, 10);
}

TEST(CachingAllocator, CountsPeaksAnewWhenAsked) {
  Fixture f;
  f.Free(f.Allocate(6400), 6400);
  f.allocator->ReleaseCached();
  f.allocator->ResetPeaks();
  EXPECT_EQ(f.allocator->statistics().peak_bytes, 0);
  EXPECT_EQ(f.allocator->statistics().peak_reserved_bytes, 0);
  EXPECT_EQ(f.allocator->statistics().of(MemoryTag::kOther).peak_bytes, 0);
  f.Free(f.Allocate(640), 640);
  EXPECT_EQ(f.allocator->statistics().peak_bytes, 640);
}

TEST(CachingAllocator, CountsCallsToTheSystem) {
  Fixture f;
  for (int i = 0; i < 10; ++i) f.Free(f.Allocate(640), 640);
  EXPECT_EQ(f.allocator->statistics().allocations, 10);
  EXPECT_EQ(f.allocator->statistics().system_allocations, 1);
  EXPECT_EQ(f.allocator->statistics().system_releases, 0);
  f.allocator->ReleaseCached();
  EXPECT_EQ(f.allocator->statistics().system_releases, 1);
}

// ---- streams

TEST(CachingAllocator, ReusesABlockOnItsStreamAtOnce) {
  FakeStream stream;
  Fixture f({.has_streams = true});
  f.source->is_host = false;
  char* a = f.Allocate(640, &stream);
  stream.Issue();
  f.Free(a, 640);
  EXPECT_EQ(f.Allocate(640, &stream), a);
  EXPECT_EQ(f.events->recorded, 0);
  f.Free(a, 640);
}

TEST(CachingAllocator, GivesNoStreamTheBlocksOfAnother) {
  FakeStream first;
  FakeStream second;
  Fixture f({.has_streams = true});
  f.source->is_host = false;
  char* a = f.Allocate(640, &first);
  f.Free(a, 640);
  char* b = f.Allocate(640, &second);
  EXPECT_NE(b, a);
  f.Free(b, 640);
}

TEST(CachingAllocator, WaitsForOtherStreamsThatUseABlock) {
  FakeStream own;
  FakeStream other;
  Fixture f({.has_streams = true});
  f.source->is_host = false;
  char* a = f.Allocate(640, &own);
  other.Issue();
  f.allocator->RecordUse(a, &other);
  f.allocator->RecordUse(a, &other);
  f.allocator->RecordUse(a, &own);
  f.Free(a, 640);
  EXPECT_EQ(f.events->recorded, 1);
  EXPECT_EQ(f.allocator->statistics().live_bytes, 0);
  char* b = f.Allocate(640, &own);
  EXPECT_NE(b, a);
  other.Finish();
  EXPECT_EQ(f.Allocate(640, &own), a);
  EXPECT_EQ(f.events->waits, 0);
  f.Free(a, 640);
  f.Free(b, 640);
}

TEST(CachingAllocator, WaitsForAllStreamsBeforeItFails) {
  FakeStream own;
  FakeStream other;
  Fixture f({.source = {.capacity_bytes = 1000}, .has_streams = true});
  f.source->is_host = false;
  char* a = f.Allocate(640, &own);
  other.Issue();
  f.allocator->RecordUse(a, &other);
  f.Free(a, 640);
  EXPECT_EQ(f.Allocate(640, &own), a);
  EXPECT_EQ(f.events->waits, 1);
  f.Free(a, 640);
}

// Pinned memory: what the CPU writes next isn't ordered by the stream that still copies.
TEST(CachingAllocator, WaitsForEveryStreamThatUsesHostMemory) {
  FakeStream copies;
  Fixture f({.has_streams = true});
  char* a = f.Allocate(640);
  copies.Issue();
  f.allocator->RecordUse(a, &copies);
  f.Free(a, 640);
  char* b = f.Allocate(640);
  EXPECT_NE(b, a);
  f.Free(b, 640);
  copies.Finish();
}

// ---- mistakes

TEST(CachingAllocatorDeathTest, DiesOfBlocksThatArentItsOwn) {
  Fixture f;
  char* a = f.Allocate(640);
  EXPECT_DEATH(f.Free(a, 641), "free on fake: 641 bytes at .*: expected the 640 that were alloc");
  EXPECT_DEATH(f.Free(a + 64, 640), "free on fake: no block at .* is live");
  f.Free(a, 640);
  EXPECT_DEATH(f.Free(a, 640), "free on fake: no block at .* is live");
}

#ifdef __SANITIZE_ADDRESS__
TEST(CachingAllocator, PoisonsWhatIsNotLive) {
  const auto source = std::make_shared<FakeSource>();
  CachingAllocator allocator({.name = "fake", .classes = {{.source = source}}});
  char* a = Bytes(allocator.Allocate(100));
  EXPECT_FALSE(__asan_address_is_poisoned(a + 99));
  EXPECT_TRUE(__asan_address_is_poisoned(a + 100));
  char* b = Bytes(allocator.Allocate(64));
  EXPECT_TRUE(__asan_address_is_poisoned(b + 64));
  allocator.Free(a, 100);
  EXPECT_TRUE(__asan_address_is_poisoned(a));
  allocator.Free(b, 64);
}
#endif

// ---- threads

TEST(CachingAllocator, IsThreadSafe) {
  Fixture f({.block_class = {.segment_bytes = 1 << 20}});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&f, t] {
      std::vector<std::pair<char*, int64_t>> held;
      for (int i = 1; i <= 3000; ++i) {
        const int64_t bytes = 1 + (i * 7919 + t * 104729) % 5000;
        char* block = f.Allocate(bytes);
        std::memset(block, t, static_cast<size_t>(bytes));
        held.emplace_back(block, bytes);
        if (held.size() < 20) continue;
        const auto [oldest, oldest_bytes] = held.front();
        held.erase(held.begin());
        if (oldest[0] != t || oldest[oldest_bytes - 1] != t) ADD_FAILURE() << "overwritten";
        f.Free(oldest, oldest_bytes);
      }
      for (const auto& [block, bytes] : held) f.Free(block, bytes);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(f.allocator->statistics().live_bytes, 0);
  EXPECT_EQ(f.allocator->statistics().allocations, 12000);
}

}  // namespace
}  // namespace skiff
