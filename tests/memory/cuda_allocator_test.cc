// Device and page-locked memory. Skipped without a device.
#include <gtest/gtest.h>

#ifdef WITH_CUDA

#include <cuda_runtime.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "framework/base/error.h"
#include "memory/cuda_allocator.h"
#include "memory/cuda_device.h"
#include "memory/cuda_memory.h"
#include "memory/out_of_memory_error.h"
#include "memory/places.h"
#include "tests/harness/cuda_place.h"

namespace skiff {
namespace {

constexpr int64_t kMegabyte = int64_t{1} << 20;

// Work on a stream that lasts until the test ends it.
class BlockedStream {
 public:
  BlockedStream() {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  ~BlockedStream() {
    Finish();
    cudaStreamDestroy(stream_);
  }
  void Block() {
    const auto wait = [](void* done) {
      while (!static_cast<std::atomic<bool>*>(done)->load()) {
      }
    };
    EXPECT_EQ(cudaLaunchHostFunc(stream_, wait, &done_), cudaSuccess);
  }
  void Finish() {
    done_ = true;
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  }
  cudaStream_t stream() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
  std::atomic<bool> done_{false};
};

// A block holds what was written into it.
void ExpectIsMemory(void* block, int64_t bytes) {
  std::vector<unsigned char> written(static_cast<size_t>(bytes));
  std::iota(written.begin(), written.end(), static_cast<unsigned char>(bytes));
  std::vector<unsigned char> read(written.size());
  ASSERT_EQ(cudaMemcpy(block, written.data(), written.size(), cudaMemcpyDefault), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(read.data(), block, read.size(), cudaMemcpyDefault), cudaSuccess);
  ASSERT_EQ(written, read);
}

using harness::CudaPlace;

// With expandable segments and without.
class CudaCaching : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!HasCudaDevice()) GTEST_SKIP() << "no GPU";
    if (GetParam() && MakeCudaVirtualMemory(kDevice) == nullptr) {
      GTEST_SKIP() << "the device maps no memory";
    }
    allocator_ = std::make_unique<CachingAllocator>(CudaCachingOptions(kDevice, GetParam()),
                                                    MakeCudaEvents(kDevice));
    use_.emplace(&DeviceOf(CudaPlace()));
  }

  const int32_t kDevice = CudaPlace().index;
  std::optional<DeviceUse> use_;  // by the test itself
  std::unique_ptr<CachingAllocator> allocator_;
};

TEST_P(CudaCaching, GivesMemoryOfAllSizes) {
  for (const int64_t bytes :
       {int64_t{1}, int64_t{1000}, kMegabyte, kMegabyte + 1, 5 * kMegabyte, 40 * kMegabyte + 3}) {
    const Buffer buffer(*allocator_, bytes);
    EXPECT_EQ(buffer.place(), CudaPlace());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 256, 0);
    ExpectIsMemory(buffer.data(), bytes);
  }
}

TEST_P(CudaCaching, GivesTheArenaOfTheLastPlanToTheNext) {
  const void* first = Buffer(*allocator_, 100 * kMegabyte).data();
  const int64_t reserved_bytes = allocator_->statistics().reserved_bytes;
  const Buffer second(*allocator_, 80 * kMegabyte);
  EXPECT_EQ(second.data(), first);
  EXPECT_EQ(allocator_->statistics().reserved_bytes, reserved_bytes);
}

// Segments of cudaMalloc don't grow: a new one replaces the first.
TEST_P(CudaCaching, GrowsTheArenaWhereSegmentsGrow) {
  const void* first = Buffer(*allocator_, 64 * kMegabyte).data();
  if (!GetParam()) allocator_->ReleaseCached();
  const Buffer second(*allocator_, 96 * kMegabyte);
  if (GetParam()) {
    EXPECT_EQ(second.data(), first);
  }
  EXPECT_EQ(allocator_->statistics().reserved_bytes, 96 * kMegabyte);
  ExpectIsMemory(second.data(), 96 * kMegabyte);
}

TEST_P(CudaCaching, GivesUnusedMemoryBackToTheSystem) {
  size_t free_before = 0;
  size_t free_after = 0;
  size_t total = 0;
  const Buffer before(*allocator_, 20 * kMegabyte);
  auto hole = std::make_unique<Buffer>(*allocator_, 400 * kMegabyte);
  const Buffer after(*allocator_, 20 * kMegabyte);
  ASSERT_EQ(cudaMemset(after.data(), 7, 20 * kMegabyte), cudaSuccess);
  ASSERT_EQ(cudaMemGetInfo(&free_before, &total), cudaSuccess);
  hole.reset();
  allocator_->ReleaseCached();
  ASSERT_EQ(cudaMemGetInfo(&free_after, &total), cudaSuccess);
  EXPECT_GE(free_after, free_before + 300 * kMegabyte);
  EXPECT_LE(allocator_->statistics().reserved_bytes, 100 * kMegabyte);
  unsigned char last = 0;
  ASSERT_EQ(cudaMemcpy(&last, static_cast<char*>(after.data()) + 20 * kMegabyte - 1, 1,
                       cudaMemcpyDefault),
            cudaSuccess);
  EXPECT_EQ(last, 7);
  // The addresses of the hole get new memory.
  const Buffer again(*allocator_, 400 * kMegabyte);
  ExpectIsMemory(again.data(), 400 * kMegabyte);
}

TEST_P(CudaCaching, GoesOnAfterItRanOutOfMemory) {
  try {
    const Buffer buffer(*allocator_, 2 * CudaMemoryBytes(kDevice), {.tag = MemoryTag::kArena});
    ADD_FAILURE() << "the device has twice its memory";
  } catch (const OutOfMemoryError& error) {
    EXPECT_EQ(error.shortage().place, CudaPlace());
    EXPECT_NE(error.shortage().reason, "");
  }
  EXPECT_EQ(allocator_->statistics().reserved_bytes, 0);
  const Buffer buffer(*allocator_, 10 * kMegabyte);
  ExpectIsMemory(buffer.data(), buffer.bytes());
}

TEST_P(CudaCaching, HonoursALimit) {
  allocator_->SetLimit(200 * kMegabyte);
  { const Buffer arena(*allocator_, 150 * kMegabyte); }
  const Buffer other(*allocator_, 160 * kMegabyte);
  EXPECT_THROW(Buffer(*allocator_, 100 * kMegabyte), OutOfMemoryError);
  const Buffer smaller(*allocator_, 20 * kMegabyte);
  EXPECT_LE(allocator_->statistics().peak_reserved_bytes, 200 * kMegabyte);
}

TEST_P(CudaCaching, ReusesABlockOnItsStreamWhileThatStillWorks) {
  BlockedStream stream;
  const AllocationOptions on_stream{.stream = stream.stream()};
  void* block = allocator_->Allocate(1000, on_stream);
  stream.Block();
  allocator_->Free(block, 1000);
  EXPECT_EQ(allocator_->Allocate(1000, on_stream), block);
  stream.Finish();
  allocator_->Free(block, 1000);
}

TEST_P(CudaCaching, WaitsForOtherStreamsThatUseABlock) {
  BlockedStream other;
  void* block = allocator_->Allocate(1000);
  other.Block();
  use_.reset();  // the allocator knows its device
  allocator_->RecordUse(block, other.stream());
  allocator_->Free(block, 1000);
  void* second = allocator_->Allocate(1000);
  EXPECT_NE(second, block);
  other.Finish();
  EXPECT_EQ(allocator_->Allocate(1000), block);
  allocator_->Free(block, 1000);
  allocator_->Free(second, 1000);
}

INSTANTIATE_TEST_SUITE_P(Segments, CudaCaching, ::testing::Values(true, false),
                         [](const ::testing::TestParamInfo<bool>& info) {
                           return info.param ? "expandable" : "whole";
                         });

TEST(CudaAllocator, IsTheDevices) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no GPU";
  const Buffer buffer(AllocatorOf(CudaPlace()), 1000);
  const DeviceUse use(&DeviceOf(CudaPlace()));
  ExpectIsMemory(buffer.data(), buffer.bytes());
}

TEST(CudaPinnedAllocator, GivesPageLockedMemory) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no GPU";
  const Buffer buffer(DeviceOf(CudaPlace()).pinned_allocator(), 1000);
  EXPECT_EQ(buffer.place(), Place::Cpu());
  cudaPointerAttributes attributes{};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, buffer.data()), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  std::memset(buffer.data(), 1, 1000);
}

TEST(CudaPinnedAllocator, KeepsABlockWhileAStreamCopiesFromIt) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no GPU";
  CachingAllocator allocator(PinnedCachingOptions(), MakeCudaEvents(-1));
  BlockedStream copies;
  void* block = allocator.Allocate(1000);
  copies.Block();
  allocator.RecordUse(block, copies.stream());
  allocator.Free(block, 1000);
  void* second = allocator.Allocate(1000);
  EXPECT_NE(second, block);
  copies.Finish();
  EXPECT_EQ(allocator.Allocate(1000), block);
  allocator.Free(block, 1000);
  allocator.Free(second, 1000);
}

}  // namespace
}  // namespace skiff

#else

TEST(CudaAllocator, IsTheDevices) { GTEST_SKIP() << "built without CUDA"; }

#endif
