#include "tests/harness/emulated_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/tensor/tensor.h"
#include "memory/allocator.h"
#include "memory/places.h"
#include "tests/harness/error_text.h"

namespace skiff::harness {
namespace {

// Four bytes in the device's memory, all of value 7 once the stream has run.
class Sevens {
 public:
  explicit Sevens(DeviceStream* stream) : buffer_(DeviceOf(EmulatedPlace()).allocator(), kBytes) {
    stream->Fill(buffer_.data(), 7, kBytes);
  }
  void CopyTo(std::vector<char>* host, DeviceStream* stream) const {
    stream->Copy(host->data(), Place::Cpu(), buffer_.data(), EmulatedPlace(), kBytes);
  }
  char First() const { return *static_cast<const char*>(buffer_.data()); }

 private:
  static constexpr int64_t kBytes = 4;
  Buffer buffer_;
};

TEST(EmulatedDevice, RunsNothingBeforeSomebodyWaits) {
  const auto stream = DeviceOf(EmulatedPlace()).MakeStream();
  Sevens sevens(stream.get());
  std::vector<char> host(4, 0);
  sevens.CopyTo(&host, stream.get());
  EXPECT_EQ(host, std::vector<char>(4, 0)) << "a host that doesn't wait must find old bytes";
  stream->Wait();
  EXPECT_EQ(host, std::vector<char>(4, 7));
}

TEST(EmulatedDevice, ReadsTheHostsMemoryWhenTheCopyRuns) {
  const auto stream = DeviceOf(EmulatedPlace()).MakeStream();
  Buffer block(DeviceOf(EmulatedPlace()).allocator(), 4);
  std::vector<char> from(4, 1);
  stream->Copy(block.data(), EmulatedPlace(), from.data(), Place::Cpu(), 4);
  // As the next step's host would, without waiting.
  from.assign(4, 2);
  std::vector<char> to(4, 0);
  stream->Copy(to.data(), Place::Cpu(), block.data(), EmulatedPlace(), 4);
  stream->Wait();
  EXPECT_EQ(to, std::vector<char>(4, 2));
}

TEST(EmulatedDevice, RunsStreamsEarlyOrLateAsASeedSays) {
  const auto has_run = [](uint64_t seed) {
    DrawWhenStreamsRun(seed);
    const auto stream = DeviceOf(EmulatedPlace()).MakeStream();
    DrawWhenStreamsRun(std::nullopt);
    Sevens sevens(stream.get());
    std::vector<char> host(4, 0);
    sevens.CopyTo(&host, stream.get());
    const bool ran_early = host[0] == 7;
    stream->Wait();
    EXPECT_EQ(host, std::vector<char>(4, 7));
    return ran_early;
  };
  std::set<bool> early;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    early.insert(has_run(seed));
    EXPECT_EQ(has_run(seed), has_run(seed));
  }
  EXPECT_EQ(early.size(), 2u);
}

TEST(EmulatedDevice, AnEventPassesWhileSomebodyAsks) {
  const auto stream = DeviceOf(EmulatedPlace()).MakeStream();
  const auto event = DeviceOf(EmulatedPlace()).MakeEvent();
  EXPECT_TRUE(event->HasPassed()) << "never recorded";
  Sevens sevens(stream.get());
  std::vector<char> host(4, 0);
  sevens.CopyTo(&host, stream.get());
  stream->Record(event.get());
  EXPECT_FALSE(event->HasPassed());
  EXPECT_EQ(host, std::vector<char>(4, 0));
  while (!event->HasPassed()) {
  }
  EXPECT_EQ(host, std::vector<char>(4, 7));
}

TEST(EmulatedDevice, AnEventRunsTheStreamUpToWhereItWasRecorded) {
  Device& device = DeviceOf(EmulatedPlace());
  const auto stream = device.MakeStream();
  const auto event = device.MakeEvent();
  event->Wait();  // never recorded
  Sevens sevens(stream.get());
  std::vector<char> early(4, 0);
  std::vector<char> late(4, 0);
  sevens.CopyTo(&early, stream.get());
  stream->Record(event.get());
  sevens.CopyTo(&late, stream.get());
  event->Wait();
  EXPECT_EQ(early, std::vector<char>(4, 7));
  EXPECT_EQ(late, std::vector<char>(4, 0));
  stream->Wait();
  EXPECT_EQ(late, std::vector<char>(4, 7));
}

TEST(EmulatedDevice, AStreamWaitsForAnEventOfAnother) {
  Device& device = DeviceOf(EmulatedPlace());
  const auto first = device.MakeStream();
  const auto second = device.MakeStream();
  const auto event = device.MakeEvent();
  second->WaitFor(*event);  // never recorded
  Sevens sevens(first.get());
  first->Record(event.get());
  std::vector<char> after_the_event(4, 0);
  sevens.CopyTo(&after_the_event, first.get());
  second->WaitFor(*event);
  std::vector<char> host(4, 0);
  sevens.CopyTo(&host, second.get());
  EXPECT_EQ(host, std::vector<char>(4, 0));
  second->Wait();
  EXPECT_EQ(host, std::vector<char>(4, 7));
  EXPECT_EQ(after_the_event, std::vector<char>(4, 0)) << "nobody has waited for this";
  first->Wait();
}

TEST(EmulatedDevice, StreamsThatDoNotWaitRunInAnyOrder) {
  Device& device = DeviceOf(EmulatedPlace());
  const auto first = device.MakeStream();
  const auto second = device.MakeStream();
  Sevens sevens(first.get());
  std::vector<char> host(4, 1);
  sevens.CopyTo(&host, second.get());
  second->Wait();
  EXPECT_NE(host, std::vector<char>(4, 7)) << "a missing WaitFor must show";
}

TEST(EmulatedDevice, CallsTheHostInItsTurn) {
  const auto stream = DeviceOf(EmulatedPlace()).MakeStream();
  std::vector<char> host(4, 0);
  Sevens sevens(stream.get());
  sevens.CopyTo(&host, stream.get());
  struct Seen {
    const std::vector<char>* host;
    std::vector<char> values;
  } seen{.host = &host, .values = {}};
  stream->Call(
      [](void* argument) {
        auto* called = static_cast<Seen*>(argument);
        called->values = *called->host;
      },
      &seen);
  EXPECT_TRUE(seen.values.empty());
  stream->Wait();
  EXPECT_EQ(seen.values, std::vector<char>(4, 7));
}

TEST(EmulatedDevice, RefusesEventsInACaptureAndGoesOnWithIt) {
  Device& device = DeviceOf(EmulatedPlace());
  const auto stream = device.MakeStream();
  const auto event = device.MakeEvent();
  stream->BeginCapture();
  const Sevens sevens(stream.get());
  EXPECT_THROW(stream->Record(event.get()), Error);
  EXPECT_THROW(stream->WaitFor(*event), Error);
  const auto graph = stream->EndCapture();
  stream->Launch(*graph);
  std::vector<char> host(4, 0);
  sevens.CopyTo(&host, stream.get());
  stream->Wait();
  EXPECT_EQ(host, std::vector<char>(4, 7));
}

TEST(EmulatedDeviceDeathTest, AFunctionOfTheHostThatTouchesTheDevicesMemoryDies) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const auto stream = DeviceOf(EmulatedPlace()).MakeStream();
        Sevens sevens(stream.get());
        stream->Call(
            [](void* argument) {
              volatile char found = static_cast<const Sevens*>(argument)->First();
              (void)found;
            },
            &sevens);
        stream->Wait();
      },
      testing::KilledBySignal(SIGSEGV), "");
}

TEST(EmulatedDeviceDeathTest, AHostThatTouchesTheDevicesMemoryDies) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto stream = DeviceOf(EmulatedPlace()).MakeStream();
  const Sevens sevens(stream.get());
  stream->Wait();
  EXPECT_EXIT(
      {
        volatile char found = sevens.First();
        (void)found;
      },
      testing::KilledBySignal(SIGSEGV), "");
}

// An address of the host that leaks into what the device works on.
TEST(EmulatedDevice, RefusesTheHostsMemoryAsItsOwn) {
  const auto stream = DeviceOf(EmulatedPlace()).MakeStream();
  std::vector<char> host(4, 0);
  const auto text = [&](const std::function<void()>& work) {
    return ErrorText(ErrorCode::kFailedPrecondition, work);
  };
  const std::string expected = "the device would use memory of the host as its own";
  EXPECT_THAT(text([&] { stream->Fill(host.data(), 1, 4); }), testing::HasSubstr(expected));
  EXPECT_THAT(
      text([&] { stream->Copy(host.data(), EmulatedPlace(), host.data(), Place::Cpu(), 4); }),
      testing::HasSubstr(expected));
  EXPECT_THAT(
      text([&] { stream->Copy(host.data(), Place::Cpu(), host.data(), EmulatedPlace(), 4); }),
      testing::HasSubstr(expected));
}

TEST(EmulatedDevice, CopiesOfTensorsWaitForAllStreams) {
  const auto stream = DeviceOf(EmulatedPlace()).MakeStream();
  Tensor tensor({4}, DType::kUint8, EmulatedPlace());
  stream->Fill(tensor.raw_data(), 9, 4);
  EXPECT_EQ(CopyToCpu(tensor).ToVector<uint8_t>(), std::vector<uint8_t>(4, 9));
}

}  // namespace
}  // namespace skiff::harness
