#include "memory/cpu_allocator.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "memory/allocator.h"
#include "memory/out_of_memory_error.h"

namespace skiff {
namespace {

constexpr int64_t kMegabyte = int64_t{1} << 20;
constexpr int64_t kHugePage = 2 * kMegabyte;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHasShadowMemory = true;  // which is resident too
#else
constexpr bool kHasShadowMemory = false;
#endif

int64_t ResidentBytes() {
  long long pages = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  if (std::fscanf(file, "%*s %lld", &pages) != 1) pages = 0;
  std::fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

// Sizes are the same under AddressSanitizer.
CachingOptions Options() {
  CachingOptions options = CpuCachingOptions();
  options.redzone_bytes = 0;
  return options;
}

std::unique_ptr<Buffer> Touched(Allocator& allocator, int64_t bytes) {
  auto buffer = std::make_unique<Buffer>(allocator, bytes);
  std::memset(buffer->data(), 1, static_cast<size_t>(bytes));
  return buffer;
}

bool BeginsAtAHugePage(const Buffer& buffer) {
  return reinterpret_cast<uintptr_t>(buffer.data()) % kHugePage == 0;
}

TEST(CpuCaching, GivesTheArenaOfTheLastPlanToTheNext) {
  CachingAllocator allocator(Options());
  auto arena = Touched(allocator, 100 * kMegabyte);
  const void* place = arena->data();
  arena.reset();
  arena = Touched(allocator, 80 * kMegabyte);
  EXPECT_EQ(arena->data(), place);
}

TEST(CpuCaching, BeginsLargeBlocksAtAHugePageWhereverTheyAreCut) {
  CachingAllocator allocator(Options());
  Touched(allocator, 40 * kMegabyte).reset();
  const Buffer first(allocator, 5 * kMegabyte + 1);
  const Buffer second(allocator, 4 * kMegabyte);
  EXPECT_TRUE(BeginsAtAHugePage(first));
  EXPECT_TRUE(BeginsAtAHugePage(second));
  EXPECT_EQ(allocator.statistics().reserved_bytes, 40 * kMegabyte);
}

// The arenas of two plans are never resident at the same time.
TEST(CpuCaching, AddsNothingToThePeakOfAlternatingArenas) {
  if (kHasShadowMemory) GTEST_SKIP() << "resident bytes are the sanitizer's";
  CachingAllocator allocator(Options());
  const int64_t before = ResidentBytes();
  for (const int64_t megabytes : {60, 80, 70, 100, 64, 100, 90, 110}) {
    const auto arena = Touched(allocator, megabytes * kMegabyte);
    EXPECT_LT(ResidentBytes() - before, 114 * kMegabyte) << megabytes;
  }
  EXPECT_LE(allocator.statistics().peak_reserved_bytes, 112 * kMegabyte);
}

TEST(CpuCaching, LeavesNothingResidentBetweenLiveBlocks) {
  if (kHasShadowMemory) GTEST_SKIP() << "resident bytes are the sanitizer's";
  CachingAllocator allocator(Options());
  Touched(allocator, 100 * kMegabyte).reset();
  // Cut out of the hundred megabytes.
  const auto small = Touched(allocator, 4 * kMegabyte);
  const int64_t before = ResidentBytes();
  allocator.ReleaseCached();
  EXPECT_LT(ResidentBytes(), before - 90 * kMegabyte);
  EXPECT_EQ(allocator.statistics().reserved_bytes, 4 * kMegabyte);
  EXPECT_EQ(static_cast<char*>(small->data())[4 * kMegabyte - 1], 1);
}

TEST(CpuCaching, KeepsAtMost256MegabytesUnused) {
  CachingAllocator allocator(Options());
  { const Buffer arena(allocator, 300 * kMegabyte); }
  EXPECT_EQ(allocator.statistics().reserved_bytes, 0);
  { const Buffer arena(allocator, 200 * kMegabyte); }
  EXPECT_EQ(allocator.statistics().reserved_bytes, 200 * kMegabyte);
}

// The blocks of a training, hundreds of small tensors and an arena, take at most 2 % more.
TEST(CpuCaching, ReservesLittleMoreThanIsAskedFor) {
  CachingAllocator allocator(Options());
  std::mt19937 random(1);
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (int i = 0; i < 300; ++i) {
    const uint32_t most = 1U << (2 + random() % 18);
    buffers.push_back(std::make_unique<Buffer>(allocator, 4 + random() % most));
  }
  buffers.push_back(std::make_unique<Buffer>(allocator, 10 * kMegabyte + 1));
  const AllocatorStatistics statistics = allocator.statistics();
  const auto live = static_cast<double>(statistics.live_bytes);
  EXPECT_LT(static_cast<double>(statistics.reserved_bytes), 1.01 * live);

  // So the same blocks fit again under a limit just above, but not under one just below.
  buffers.clear();
  allocator.SetLimit(static_cast<int64_t>(1.02 * live));
  buffers.push_back(std::make_unique<Buffer>(allocator, static_cast<int64_t>(live)));
  buffers.clear();
  allocator.SetLimit(static_cast<int64_t>(0.99 * live));
  EXPECT_THROW(Buffer(allocator, static_cast<int64_t>(live)), OutOfMemoryError);
  buffers.push_back(std::make_unique<Buffer>(allocator, static_cast<int64_t>(live / 2)));
}

// The process-wide allocator, under AddressSanitizer too.
TEST(CpuAllocator, HonoursALimitAndGoesOn) {
  Allocator& allocator = CpuAllocator();
  allocator.ReleaseCached();
  allocator.SetLimit(allocator.statistics().reserved_bytes + 10 * kMegabyte);
  const Buffer fitting(allocator, 6 * kMegabyte);
  EXPECT_THROW(Buffer(allocator, 6 * kMegabyte, {.tag = MemoryTag::kArena}), OutOfMemoryError);
  { const Buffer smaller(allocator, 3 * kMegabyte); }
  allocator.SetLimit(0);
  const Buffer unlimited(allocator, 6 * kMegabyte);
}

#ifdef __SANITIZE_ADDRESS__
TEST(CpuAllocatorDeathTest, LetsTheSanitizerSeeMisuse) {
  Allocator& allocator = CpuAllocator();
  auto* block = static_cast<char*>(allocator.Allocate(100));
  EXPECT_DEATH(block[100] = 1, "heap-buffer-overflow");
  allocator.Free(block, 100);
  EXPECT_DEATH(block[0] = 1, "heap-use-after-free");
}
#endif

}  // namespace
}  // namespace skiff
