#include "memory/virtual_segment_source.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "framework/base/error.h"
#include "memory/caching_allocator.h"
#include "memory/out_of_memory_error.h"

namespace skiff {
namespace {

constexpr int64_t kKilobyte = 1024;

// A driver that maps no memory, but checks that it is called as drivers require.
class FakeVirtualMemory final : public VirtualMemory {
 public:
  ~FakeVirtualMemory() override {
    EXPECT_TRUE(chunks.empty());
    EXPECT_TRUE(addresses.empty());
  }

  int64_t granularity() const override { return 2 * kKilobyte; }
  void* ReserveAddresses(int64_t bytes) override {
    EXPECT_EQ(bytes % granularity(), 0);
    char* begin = next_;
    next_ += 2 * bytes;
    addresses[begin] = bytes;
    return begin;
  }
  void FreeAddresses(void* begin, int64_t bytes) noexcept override {
    EXPECT_EQ(addresses.at(begin), bytes);
    addresses.erase(begin);
  }
  bool Map(void* chunk, int64_t bytes) override {
    EXPECT_EQ(bytes % granularity(), 0);
    if (mapped_bytes() + bytes > capacity_bytes) return false;
    EXPECT_TRUE(chunks.emplace(chunk, bytes).second) << "mapped twice";
    return true;
  }
  void Unmap(void* chunk, int64_t bytes) noexcept override {
    // Only as a whole.
    EXPECT_EQ(chunks.at(chunk), bytes);
    chunks.erase(chunk);
  }
  bool Allow(void* begin, int64_t bytes) override {
    for (int64_t i = 0; i < bytes; i += chunks.begin()->second) {
      EXPECT_EQ(chunks.count(static_cast<char*>(begin) + i), 1);
    }
    return allows;
  }
  void Synchronize() noexcept override { ++synchronizations; }
  std::string failure() const override { return "the fake has no more"; }

  int64_t mapped_bytes() const {
    int64_t bytes = 0;
    for (const auto& [chunk, chunk_bytes] : chunks) bytes += chunk_bytes;
    return bytes;
  }

  int64_t capacity_bytes = int64_t{1} << 40;
  bool allows = true;
  int64_t synchronizations = 0;
  std::map<void*, int64_t> addresses;
  std::map<void*, int64_t> chunks;

 private:
  // Never read or written.
  char* next_ = reinterpret_cast<char*>(uintptr_t{1} << 40);
};

TEST(VirtualSegmentSource, MapsWholeChunksOfTheGranularity) {
  const auto memory = std::make_shared<FakeVirtualMemory>();
  VirtualSegmentSource source(memory, 5 * kKilobyte);
  EXPECT_EQ(source.commit_granularity(), 6 * kKilobyte);
  auto* segment = static_cast<char*>(source.Reserve(60 * kKilobyte, 256));
  EXPECT_TRUE(source.Commit(segment, 18 * kKilobyte));
  EXPECT_EQ(memory->chunks.size(), 3);
  // From the middle of a range that was mapped in one call.
  source.Decommit(segment + 6 * kKilobyte, 6 * kKilobyte);
  EXPECT_EQ(memory->chunks.size(), 2);
  EXPECT_EQ(memory->synchronizations, 1);
  source.Decommit(segment, 6 * kKilobyte);
  source.Decommit(segment + 12 * kKilobyte, 6 * kKilobyte);
  source.Release(segment, 60 * kKilobyte);
}

TEST(VirtualSegmentSource, MapsAllOrNothing) {
  const auto memory = std::make_shared<FakeVirtualMemory>();
  memory->capacity_bytes = 9 * kKilobyte;
  VirtualSegmentSource source(memory, 4 * kKilobyte);
  void* segment = source.Reserve(40 * kKilobyte, 256);
  EXPECT_FALSE(source.Commit(segment, 12 * kKilobyte));
  EXPECT_EQ(memory->mapped_bytes(), 0);
  EXPECT_EQ(source.failure(), "the fake has no more");
  memory->allows = false;
  EXPECT_FALSE(source.Commit(segment, 8 * kKilobyte));
  EXPECT_EQ(memory->mapped_bytes(), 0);
  source.Release(segment, 40 * kKilobyte);
}

TEST(VirtualSegmentSource, RefusesAlignmentsThatNoAddressPromises) {
  VirtualSegmentSource source(std::make_shared<FakeVirtualMemory>(), 4 * kKilobyte);
  EXPECT_THROW(source.Reserve(40 * kKilobyte, 4 * kKilobyte), Error);
}

// Used like CUDA's allocator: with more addresses than there is memory.
TEST(VirtualSegmentSource, LetsOneSegmentHoldEverything) {
  const auto memory = std::make_shared<FakeVirtualMemory>();
  memory->capacity_bytes = 100 * kKilobyte;
  CachingAllocator allocator(
      {.name = "fake",
       .classes = {{.source = std::make_shared<VirtualSegmentSource>(memory, 10 * kKilobyte),
                    .segment_bytes = 100 * kKilobyte,
                    .rounding = 512,
                    .alignment = 256}}});
  void* arena = allocator.Allocate(50 * kKilobyte);
  void* parameter = allocator.Allocate(kKilobyte);
  allocator.Free(arena, 50 * kKilobyte);
  // The hole's memory is mapped anew after the parameter, since the arena needs one piece; whatever
  // exceeds the addresses is in a second segment.
  void* larger = allocator.Allocate(80 * kKilobyte);
  EXPECT_EQ(memory->mapped_bytes(), 90 * kKilobyte);
  EXPECT_THROW(allocator.Allocate(20 * kKilobyte), OutOfMemoryError);
  allocator.Free(larger, 80 * kKilobyte);
  arena = allocator.Allocate(50 * kKilobyte);
  allocator.Free(arena, 50 * kKilobyte);
  allocator.Free(parameter, kKilobyte);
  allocator.ReleaseCached();
  EXPECT_EQ(memory->mapped_bytes(), 0);
}

}  // namespace
}  // namespace skiff
