#include "memory/allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "framework/base/error.h"
#include "memory/places.h"

namespace skiff {
namespace {

using ::testing::MatchesRegex;

TEST(CpuAllocator, CountsLiveAndPeakBytes) {
  Allocator& allocator = AllocatorOf(Place::Cpu());
  const AllocatorStatistics before = allocator.statistics();
  {
    const Buffer a(allocator, 1 << 20);
    const Buffer b(allocator, 100);
    const AllocatorStatistics during = allocator.statistics();
    EXPECT_EQ(during.live_bytes - before.live_bytes, (1 << 20) + 100);
    EXPECT_EQ(during.allocations - before.allocations, 2);
    EXPECT_GE(during.peak_bytes, during.live_bytes);
  }
  const AllocatorStatistics after = allocator.statistics();
  EXPECT_EQ(after.live_bytes, before.live_bytes);
  EXPECT_EQ(after.allocations - before.allocations, 2);
  EXPECT_GE(after.peak_bytes, before.live_bytes + (1 << 20) + 100);
}

TEST(CpuAllocator, AlignsBlocks) {
  Allocator& allocator = AllocatorOf(Place::Cpu());
  for (const int64_t bytes : {1, 63, 64, 65, 1000}) {
    const Buffer buffer(allocator, bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kBufferAlignment, 0U);
    std::memset(buffer.data(), 1, static_cast<size_t>(bytes));
  }
}

TEST(CpuAllocator, BeginsLargeBlocksAtAHugePage) {
  for (const int64_t bytes : {int64_t{4} << 20, (int64_t{5} << 20) + 1}) {
    const Buffer buffer(AllocatorOf(Place::Cpu()), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % (2U << 20), 0U);
    std::memset(buffer.data(), 1, static_cast<size_t>(bytes));
  }
}

TEST(CpuAllocator, GivesNullForNothing) {
  Allocator& allocator = AllocatorOf(Place::Cpu());
  const AllocatorStatistics before = allocator.statistics();
  const Buffer buffer(allocator, 0);
  EXPECT_EQ(buffer.data(), nullptr);
  EXPECT_EQ(allocator.statistics().live_bytes, before.live_bytes);
}

TEST(CpuAllocator, RefusesWhatItCannotGive) {
  Allocator& allocator = AllocatorOf(Place::Cpu());
  const int64_t live_bytes = allocator.statistics().live_bytes;
  try {
    allocator.Allocate(-1);
    ADD_FAILURE() << "a negative count was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  }
  try {
    allocator.Allocate(std::numeric_limits<int64_t>::max());
    ADD_FAILURE() << "the whole address space was given";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  }
  EXPECT_EQ(allocator.statistics().live_bytes, live_bytes);
}

TEST(CpuAllocator, IsThreadSafe) {
  Allocator& allocator = AllocatorOf(Place::Cpu());
  const AllocatorStatistics before = allocator.statistics();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&allocator] {
      for (int i = 1; i <= 500; ++i) {
        const Buffer buffer(allocator, i);
        std::memset(buffer.data(), i, static_cast<size_t>(i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const AllocatorStatistics after = allocator.statistics();
  EXPECT_EQ(after.live_bytes, before.live_bytes);
  EXPECT_EQ(after.allocations - before.allocations, 2000);
}

TEST(AllocatorOf, RefusesPlacesThatAreNotThere) {
  EXPECT_THROW(AllocatorOf({PlaceKind::kCpu, 1}), Error);
  try {
    AllocatorOf(Place::Cuda(1000));
    ADD_FAILURE() << "there are 1001 devices";
  } catch (const Error& error) {
    // Without a device, the message has the CUDA runtime's reason.
    EXPECT_THAT(error.what(), MatchesRegex("place cuda:1000: "
                                           "(built without CUDA"
                                           "|there is one CUDA device, expected cuda:0"
                                           "|there are ([0-9]+) CUDA devices, expected cuda:0 to "
                                           "cuda:[0-9]+"
                                           "|no CUDA devices [(][^()]+[)])"));
  }
}

TEST(Buffer, CountsUnderItsTag) {
  Allocator& allocator = AllocatorOf(Place::Cpu());
  const auto live = [&allocator](MemoryTag tag) {
    return allocator.statistics().of(tag).live_bytes;
  };
  const int64_t parameters = live(MemoryTag::kParameter);
  const int64_t arenas = live(MemoryTag::kArena);
  {
    const Buffer parameter(allocator, 100, {.tag = MemoryTag::kParameter});
    const MemoryTagScope scope(MemoryTag::kArena);
    const Buffer arena(allocator, 1000);
    EXPECT_EQ(parameter.tag(), MemoryTag::kParameter);
    EXPECT_EQ(arena.tag(), MemoryTag::kArena);
    EXPECT_EQ(live(MemoryTag::kParameter), parameters + 100);
    EXPECT_EQ(live(MemoryTag::kArena), arenas + 1000);
  }
  EXPECT_EQ(live(MemoryTag::kParameter), parameters);
  EXPECT_EQ(live(MemoryTag::kArena), arenas);
}

TEST(Buffer, BorrowsWithoutFreeing) {
  std::vector<char> memory(10);
  const AllocatorStatistics before = AllocatorOf(Place::Cpu()).statistics();
  { const Buffer buffer(memory.data(), 10, Place::Cpu()); }
  memory[9] = 1;
  EXPECT_EQ(AllocatorOf(Place::Cpu()).statistics().live_bytes, before.live_bytes);
}

}  // namespace
}  // namespace skiff
