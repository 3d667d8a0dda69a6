// A device's streams, events, copies and graphs, as device.h promises them. Skipped without a
// device. (tests/harness/emulated_device_test.cc has the same of the emulated one.)
#include <gtest/gtest.h>

#ifdef WITH_CUDA

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "framework/base/error.h"
#include "memory/allocator.h"
#include "memory/cuda_device.h"
#include "memory/device.h"
#include "memory/places.h"

namespace skiff {
namespace {

class CudaDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasCudaDevice()) GTEST_SKIP() << "no GPU";
    block_ = std::make_unique<Buffer>(device().allocator(), kBytes);
    stream_ = device().MakeStream();
  }

  static Device& device() { return DeviceOf(Place::Cuda()); }
  static void CopyTo(std::vector<char>* host, const Buffer& block, DeviceStream* stream) {
    stream->Copy(host->data(), Place::Cpu(), block.data(), Place::Cuda(), host->size());
  }

  static constexpr int64_t kBytes = 1000;
  std::unique_ptr<Buffer> block_;
  std::unique_ptr<DeviceStream> stream_;
};

TEST_F(CudaDevice, RunsWorkInItsOrder) {
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
TEST_F(CudaDevice, AStreamWaitsForAnEventOfAnother) {
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

TEST_F(CudaDevice, AnEventThatWasNeverRecordedHoldsNothingUp) {
  const auto event = device().MakeEvent();
  stream_->WaitFor(*event);
  event->Wait();
  stream_->Fill(block_->data(), 6, kBytes);
  std::vector<char> host(kBytes);
  CopyTo(&host, *block_, stream_.get());
  stream_->Wait();
  EXPECT_EQ(host, std::vector<char>(kBytes, 6));
}

TEST_F(CudaDevice, CallsTheHostInItsTurn) {
  // Page-locked, since other memory may be read before its turn.
  Buffer host(device().pinned_allocator(), kBytes);
  stream_->Fill(block_->data(), 3, kBytes);
  stream_->Copy(host.data(), Place::Cpu(), block_->data(), Place::Cuda(), kBytes);
  // Sees the copy, and the next copy sees what it has written.
  stream_->Call(
      [](void* argument) {
        char* bytes = static_cast<char*>(argument);
        for (int64_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<char>(bytes[i] * 2);
      },
      host.data());
  stream_->Copy(block_->data(), Place::Cuda(), host.data(), Place::Cpu(), kBytes);
  std::vector<char> back(kBytes);
  CopyTo(&back, *block_, stream_.get());
  stream_->Wait();
  EXPECT_EQ(back, std::vector<char>(kBytes, 6));
}

TEST_F(CudaDevice, RunsACapturedGraphEachTimeItIsLaunched) {
  Buffer target(device().allocator(), kBytes);
  stream_->Fill(target.data(), 0, kBytes);
  stream_->BeginCapture();
  stream_->Copy(target.data(), Place::Cuda(), block_->data(), Place::Cuda(), kBytes);
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

TEST_F(CudaDevice, RefusesEventsInACaptureAndGoesOnWithIt) {
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

}  // namespace
}  // namespace skiff

#else

TEST(CudaDevice, IsBuilt) { GTEST_SKIP() << "built without CUDA"; }

#endif
