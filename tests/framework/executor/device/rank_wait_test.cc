#include "framework/executor/device/rank_wait.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "framework/base/error.h"
#include "framework/base/steady_seconds.h"
#include "framework/executor/device/device_link.h"
#include "tests/framework/executor/echo_communicator.h"
#include "tests/harness/emulated_device.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using harness::EmulatedPlace;
using ::testing::HasSubstr;

constexpr int kNever = std::numeric_limits<int>::max();

// Passes when it is asked for the nth time.
class AskedEvent final : public DeviceEvent {
 public:
  explicit AskedEvent(int asks) : asks_(asks) {}
  bool HasPassed() override { return --asks_ <= 0; }
  void Wait() override {}
  double SecondsSince(const DeviceEvent&) const override { return 0; }

 private:
  int asks_;
};

// Has lost the other rank.
class LostCommunicator final : public EchoCommunicator {
 public:
  void Check() override {
    ++checks;
    Throw(ErrorCode::kIo, "rank 1 has ended");
  }
  int checks = 0;
};

// Has two ranks and the time limit of a communicator of a device.
class LimitedCommunicator final : public EchoCommunicator {
 public:
  void CheckWait(double waited_seconds) override {
    SKIFF_ENFORCE(waited_seconds <= kLimit, kIo, "rank 0 has waited 0.3 s for other ranks");
  }
  static constexpr double kLimit = 0.3;
};

TEST(AwaitEvent, AsksNobodyWhileAStepOfUsualLengthEnds) {
  AskedEvent event(5);
  LostCommunicator communicator;
  AwaitEvent(&event, &communicator);
  EXPECT_EQ(communicator.checks, 0);
}

TEST(AwaitEvent, ThrowsWhenARankDoesNotComeAnyMore) {
  AskedEvent event(kNever);
  LostCommunicator communicator;
  EXPECT_THAT(ErrorText(ErrorCode::kIo, [&] { AwaitEvent(&event, &communicator); }),
              HasSubstr("rank 1 has ended"));
}

// The other rank is there, but stopped: only the time says so.
TEST(AwaitEvent, ThrowsAtTheLimitOfTheCommunicator) {
  AskedEvent event(kNever);
  LimitedCommunicator communicator;
  const double start = SteadySeconds();
  EXPECT_EQ(ErrorText(ErrorCode::kIo, [&] { AwaitEvent(&event, &communicator); }),
            "rank 0 has waited 0.3 s for other ranks");
  EXPECT_GE(SteadySeconds() - start, LimitedCommunicator::kLimit);
}

// What the link does with it.
class LinkOfRanks : public ::testing::Test {
 protected:
  DeviceLink link_{EmulatedPlace()};
  Buffer memory_{link_.device().allocator(), 1};
};

TEST_F(LinkOfRanks, WaitsForTheWholeStream) {
  EchoCommunicator communicator;
  link_.NoteRanks(&communicator);
  for (unsigned char value = 1; value < 5; ++value) {
    char found = 0;
    link_.stream().Fill(memory_.data(), value, 1);
    link_.stream().Copy(&found, Place::Cpu(), memory_.data(), EmulatedPlace(), 1);
    link_.Wait();
    EXPECT_EQ(found, value);
  }
  link_.NoteRanks(nullptr);
  link_.Wait();
}

TEST_F(LinkOfRanks, WaitsNoLongerThanTheCommunicator) {
  AskedEvent never(kNever);
  LimitedCommunicator communicator;
  link_.NoteRanks(&communicator);
  EXPECT_EQ(ErrorText(ErrorCode::kIo, [&] { link_.Await(&never); }),
            "rank 0 has waited 0.3 s for other ranks");
}

TEST_F(LinkOfRanks, AsksOnceMoreOnlyIfThereAreRanksAgain) {
  AskedEvent never(kNever);
  LostCommunicator communicator;
  link_.NoteRanks(&communicator);
  EXPECT_THAT(ErrorText([&] { link_.Await(&never); }), HasSubstr("rank 1 has ended"));
  // The device has ended the work.
  link_.Await(&never);
  link_.Wait();
  EXPECT_EQ(communicator.checks, 1);
}

TEST(LinkOfTheCpu, KnowsNoRanks) {
  LostCommunicator communicator;
  DeviceLink::Host()->NoteRanks(&communicator);
  DeviceLink::Host()->Wait();
}

}  // namespace
}  // namespace skiff
