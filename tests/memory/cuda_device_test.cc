// A device's streams, events, copies and graphs, as device.h promises them. Skipped without a
// device. (tests/harness/emulated_device_test.cc has the same of the emulated one.)
#include <gtest/gtest.h>

#ifdef WITH_CUDA

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/str_cat.h"
#include "memory/allocator.h"
#include "memory/cuda_device.h"
#include "memory/device.h"
#include "memory/places.h"

namespace skiff {
namespace {

// On each device, while the first is the current one.
class CudaDevice : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!HasCudaDevice()) GTEST_SKIP() << "no GPU";
    block_ = std::make_unique<Buffer>(device().allocator(), kBytes);
    stream_ = device().MakeStream();
  }

  static Place place() { return Place::Cuda(GetParam()); }
  static Device& device() { return DeviceOf(place()); }
  static void CopyTo(std::vector<char>* host, const Buffer& block, DeviceStream* stream) {
    stream->Copy(host->data(), Place::Cpu(), block.data(), place(), host->size());
  }

  static constexpr int64_t kBytes = 1000;
  std::unique_ptr<Buffer> block_;
  std::unique_ptr<DeviceStream> stream_;
};

TEST_P(CudaDevice, RunsWorkInItsOrder) {
  std::vector<char> first(kBytes), second(kBytes);
  stream_->Fill(block_->data(), 7, kBytes);
  CopyTo(&first, *block_, stream_.get());
  stream_->Fill(block_->data(), 9, kBytes / 2);
  CopyTo(&second, *block_, stream_.get());
  stream_->Wait();
  EXPECT_EQ(first, std::vector<char>(kBytes, 7));
  std::vector<char> expected(kBytes, 7);
  std::fill_n(expected.begin(), kBytes / 2, char{9});
  EXPECT_EQ(second, expected);
}

// The other stream's work is late: without the wait, the copy would come first.
TEST_P(CudaDevice, AStreamWaitsForAnEventOfAnother) {
  const auto other = device().MakeStream();
  const auto event = device().MakeEvent();
  stream_->Fill(block_->data(), 1, kBytes);
  stream_->Wait();
  other->Call([](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }, nullptr);
  other->Fill(block_->data(), 2, kBytes);
  other->Record(event.get());
  stream_->WaitFor(*event);
  std::vector<char> host(kBytes);
  CopyTo(&host, *block_, stream_.get());
  stream_->Wait();
  EXPECT_EQ(host, std::vector<char>(kBytes, 2));
}

TEST_P(CudaDevice, AnEventThatWasNeverRecordedHoldsNothingUp) {
  const auto event = device().MakeEvent();
  stream_->WaitFor(*event);
  event->Wait();
  stream_->Fill(block_->data(), 6, kBytes);
  std::vector<char> host(kBytes);
  CopyTo(&host, *block_, stream_.get());
  stream_->Wait();
  EXPECT_EQ(host, std::vector<char>(kBytes, 6));
}

TEST_P(CudaDevice, CallsTheHostInItsTurn) {
  // Page-locked, since other memory may be read before its turn.
  Buffer host(device().pinned_allocator(), kBytes);
  stream_->Fill(block_->data(), 3, kBytes);
  stream_->Copy(host.data(), Place::Cpu(), block_->data(), place(), kBytes);
  // Sees the copy, and the next copy sees what it has written.
  stream_->Call(
      [](void* argument) {
        char* bytes = static_cast<char*>(argument);
        for (int64_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<char>(bytes[i] * 2);
      },
      host.data());
  stream_->Copy(block_->data(), place(), host.data(), Place::Cpu(), kBytes);
  std::vector<char> back(kBytes);
  CopyTo(&back, *block_, stream_.get());
  stream_->Wait();
  EXPECT_EQ(back, std::vector<char>(kBytes, 6));
}

TEST_P(CudaDevice, RunsACapturedGraphEachTimeItIsLaunched) {
  Buffer target(device().allocator(), kBytes);
  stream_->Fill(target.data(), 0, kBytes);
  stream_->BeginCapture();
  stream_->Copy(target.data(), place(), block_->data(), place(), kBytes);
  const auto graph = stream_->EndCapture();
  std::vector<char> host(kBytes);
  CopyTo(&host, target, stream_.get());
  stream_->Wait();
  EXPECT_EQ(host, std::vector<char>(kBytes, 0)) << "a capture runs nothing";
  for (const char value : {4, 5}) {
    stream_->Fill(block_->data(), static_cast<unsigned char>(value), kBytes);
    stream_->Launch(*graph);
    CopyTo(&host, target, stream_.get());
    stream_->Wait();
    EXPECT_EQ(host, std::vector<char>(kBytes, value));
  }
}

TEST_P(CudaDevice, RefusesEventsInACaptureAndGoesOnWithIt) {
  const auto event = device().MakeEvent();
  stream_->Record(event.get());
  stream_->BeginCapture();
  EXPECT_THROW(stream_->Record(event.get()), Error);
  EXPECT_THROW(stream_->WaitFor(*event), Error);
  stream_->Fill(block_->data(), 8, kBytes);
  const auto graph = stream_->EndCapture();
  stream_->Launch(*graph);
  stream_->Record(event.get());
  event->Wait();
  std::vector<char> host(kBytes);
  CopyTo(&host, *block_, stream_.get());
  stream_->Wait();
  EXPECT_EQ(host, std::vector<char>(kBytes, 8));
}

TEST_P(CudaDevice, AnEventHasPassedWhenItsWorkIsDone) {
  const auto event = device().MakeEvent();
  EXPECT_TRUE(event->HasPassed()) << "never recorded";
  std::atomic<bool> ends = false;
  stream_->Call(
      [](void* argument) {
        while (!*static_cast<std::atomic<bool>*>(argument)) std::this_thread::yield();
      },
      &ends);
  stream_->Record(event.get());
  EXPECT_FALSE(event->HasPassed());
  ends = true;
  event->Wait();
  EXPECT_TRUE(event->HasPassed());
}

TEST_P(CudaDevice, CopiesNowBehindTheWorkOfItsStreams) {
  const std::vector<char> written(kBytes, 3);
  std::vector<char> read(kBytes);
  stream_->Fill(block_->data(), 4, kBytes);
  device().CopyNow(read.data(), Place::Cpu(), block_->data(), place(), kBytes);
  EXPECT_EQ(read, std::vector<char>(kBytes, 4));
  device().CopyNow(block_->data(), place(), written.data(), Place::Cpu(), kBytes);
  CopyTo(&read, *block_, stream_.get());
  stream_->Wait();
  EXPECT_EQ(read, written);
}

TEST_P(CudaDevice, IsCurrentWhileItIsUsed) {
  const auto current = [] {
    int device = -1;
    EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
    return device;
  };
  {
    const DeviceUse use(&device());
    EXPECT_EQ(current(), GetParam());
    {
      const DeviceUse first(&DeviceOf(Place::Cuda(0)));
      EXPECT_EQ(current(), 0);
    }
    EXPECT_EQ(current(), GetParam());
  }
  EXPECT_EQ(current(), 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, CudaDevice,
                         ::testing::Range(0, std::max(static_cast<int>(CudaDeviceCount()), 1)));

TEST(CudaDevices, SayHowManyThereAre) {
  const int count = CudaDeviceCount();
  if (count == 0) GTEST_SKIP() << "no GPU";
  const std::string there =
      count == 1
          ? "there is one CUDA device, expected cuda:0"
          : StrCat("there are ", count, " CUDA devices, expected cuda:0 to cuda:", count - 1);
  for (const int index : {count, -1}) {
    try {
      DeviceOf(Place::Cuda(index));
      ADD_FAILURE() << "there is a device " << index;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), StrCat("place cuda:", index, ": ", there));
    }
  }
}

class TwoCudaDevices : public ::testing::Test {
 protected:
  void SetUp() override {
    if (CudaDeviceCount() < 2) GTEST_SKIP() << "fewer than two GPUs";
  }
  static constexpr int64_t kBytes = 1000;
};

TEST_F(TwoCudaDevices, HaveMemoryOfTheirOwn) {
  const AllocatorStatistics before = AllocatorOf(Place::Cuda(0)).statistics();
  const Buffer block(AllocatorOf(Place::Cuda(1)), kBytes);
  EXPECT_EQ(block.place(), Place::Cuda(1));
  EXPECT_EQ(AllocatorOf(Place::Cuda(0)).statistics().live_bytes, before.live_bytes);
}

// Each copy waits for the streams of both devices.
TEST_F(TwoCudaDevices, CopyToEachOther) {
  const Place places[] = {Place::Cuda(0), Place::Cuda(1)};
  const Buffer blocks[] = {Buffer(AllocatorOf(places[0]), kBytes),
                           Buffer(AllocatorOf(places[1]), kBytes)};
  const auto writer = DeviceOf(places[1]).MakeStream();
  writer->Fill(blocks[1].data(), 5, kBytes);
  CopyBytes(blocks[0].data(), places[0], blocks[1].data(), places[1], kBytes);
  std::vector<char> host(kBytes);
  CopyBytes(host.data(), Place::Cpu(), blocks[0].data(), places[0], kBytes);
  EXPECT_EQ(host, std::vector<char>(kBytes, 5));
}

TEST_F(TwoCudaDevices, AStreamRefusesTheMemoryOfTheOther) {
  const Buffer here(AllocatorOf(Place::Cuda(0)), kBytes);
  const Buffer there(AllocatorOf(Place::Cuda(1)), kBytes);
  const auto stream = DeviceOf(Place::Cuda(0)).MakeStream();
  try {
    stream->Copy(here.data(), Place::Cuda(0), there.data(), Place::Cuda(1), kBytes);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "a copy in a stream of cuda:0 from or to cuda:1: expected the CPU or the stream's "
                 "device");
  }
}

TEST_F(TwoCudaDevices, AStreamWaitsForAnEventOfTheOther) {
  std::vector<char> host(kBytes);
  Buffer pinned(DeviceOf(Place::Cuda(0)).pinned_allocator(), kBytes);
  const Buffer blocks[] = {Buffer(AllocatorOf(Place::Cuda(0)), kBytes),
                           Buffer(AllocatorOf(Place::Cuda(1)), kBytes)};
  const auto first = DeviceOf(Place::Cuda(0)).MakeStream();
  const auto second = DeviceOf(Place::Cuda(1)).MakeStream();
  const auto copied = DeviceOf(Place::Cuda(0)).MakeEvent();
  first->Fill(blocks[0].data(), 6, kBytes);
  first->Copy(pinned.data(), Place::Cpu(), blocks[0].data(), Place::Cuda(0), kBytes);
  first->Record(copied.get());
  second->WaitFor(*copied);
  second->Copy(blocks[1].data(), Place::Cuda(1), pinned.data(), Place::Cpu(), kBytes);
  second->Copy(host.data(), Place::Cpu(), blocks[1].data(), Place::Cuda(1), kBytes);
  second->Wait();
  EXPECT_EQ(host, std::vector<char>(kBytes, 6));
}

}  // namespace
}  // namespace skiff

#else

TEST(CudaDevice, IsBuilt) { GTEST_SKIP() << "built without CUDA"; }

#endif
