// The communication stream: a thread of the CPU, or a second stream of a device.
#include "framework/executor/device/comm_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/error.h"
#include "framework/comm/rank_resources.h"
#include "framework/comm/threads_communicator.h"
#include "memory/places.h"
#include "tests/framework/executor/echo_communicator.h"
#include "tests/harness/emulated_device.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using harness::EmulatedPlace;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<CommLink> OnCpu() { return MakeCommLink(DeviceLink::Host().get()); }

// ---- the thread of the CPU

TEST(CommThread, RunsWorkInOrderInAnotherThread) {
  const auto link = OnCpu();
  EXPECT_EQ(link->context().stream, nullptr);
  std::vector<int> ran;
  std::thread::id thread;
  for (int i = 0; i < 3; ++i) {
    link->Issue(
        [&ran, &thread, i] {
          ran.push_back(i);
          thread = std::this_thread::get_id();
        },
        /*follows_main=*/true);
  }
  link->Finish();
  EXPECT_THAT(ran, ElementsAre(0, 1, 2));
  EXPECT_NE(thread, std::this_thread::get_id());
}

// The main stream goes on meanwhile, else this would never end.
TEST(CommThread, RunsBesideTheCallerUntilTheCallerWaits) {
  const auto link = OnCpu();
  std::mutex held;
  held.lock();
  bool first = false;
  std::atomic<bool> second = false;
  link->Issue([&] { first = true; }, true);
  link->Issue(
      [&] {
        const std::lock_guard wait(held);
        second = true;
      },
      true);
  link->Await(1);
  EXPECT_TRUE(first);
  EXPECT_FALSE(second);
  held.unlock();
  link->Await(2);
  EXPECT_TRUE(second);
}

TEST(CommThread, HasOneOpenMpThread) {
  const auto link = OnCpu();
  const int threads = omp_get_max_threads();
  int beside = 0;
  link->Issue([&] { beside = omp_get_max_threads(); }, true);
  link->Finish();
  EXPECT_EQ(beside, 1);
  EXPECT_EQ(omp_get_max_threads(), threads);
}

TEST(CommThread, ThrowsAFailureAtTheFirstWaitThatIncludesIt) {
  const auto link = OnCpu();
  bool runs_on = false;
  link->Issue([] {}, true);
  link->Issue([] { Throw(ErrorCode::kIo, "rank 2 has ended"); }, true);
  link->Issue([&] { runs_on = true; }, true);
  EXPECT_NO_THROW(link->Await(1));
  EXPECT_THAT(ErrorText(ErrorCode::kIo, [&] { link->Await(2); }), HasSubstr("rank 2 has ended"));
  EXPECT_THAT(ErrorText([&] { link->Await(3); }), HasSubstr("rank 2 has ended"));
  EXPECT_THAT(ErrorText([&] { link->Finish(); }), HasSubstr("rank 2 has ended"));
  link->WaitQuietly();
  EXPECT_FALSE(runs_on) << "after a failure, the others wait for nobody";
}

TEST(CommThread, BeginsAnewAfterAFailure) {
  const auto link = OnCpu();
  link->Issue([] { throw std::logic_error("no Error"); }, true);
  EXPECT_THROW(link->Finish(), std::logic_error);
  link->WaitQuietly();
  int ran = 0;
  link->Issue([&] { ++ran; }, true);
  link->Await(1);
  link->Finish();
  link->Finish();
  EXPECT_EQ(ran, 1);
}

// Many short pieces of work, with waits at drawn places: what a wait includes must have ended.
TEST(CommThread, WaitsForAsMuchAsIsAskedFor) {
  const auto link = OnCpu();
  std::mt19937 draws(1);
  for (int run = 0; run < 200; ++run) {
    std::vector<int> results(20, 0);  // no atomics: a wait orders the memory, too
    for (size_t i = 0; i < results.size(); ++i) {
      link->Issue([&results, i] { results[i] = static_cast<int>(i) + 1; }, true);
      if (draws() % 3 != 0) continue;
      const size_t count = draws() % (i + 1) + 1;
      link->Await(count);
      ASSERT_EQ(results[count - 1], static_cast<int>(count)) << run;
    }
    link->Finish();
    ASSERT_EQ(std::ranges::count(results, 0), 0);
  }
}

TEST(CommThread, EndsWithItsWork) {
  int ran = 0;
  {
    const auto link = OnCpu();
    for (int i = 0; i < 3; ++i) link->Issue([&] { ++ran; }, true);
  }
  EXPECT_EQ(ran, 3);
}

// ---- the stream of a device

// Two bytes on the device: the main stream writes the first, and the other stream copies that to
// the second.
class CommStreamTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  CommStreamTest() { DrawWhenStreamsRun(GetParam()); }
  ~CommStreamTest() override { harness::DrawWhenStreamsRun(std::nullopt); }

  static void DrawWhenStreamsRun(uint64_t seed) {
    if (seed > 0) harness::DrawWhenStreamsRun(seed);
    EmulatedPlace();
  }

  char* At(size_t i) const { return static_cast<char*>(memory_.data()) + i; }
  void Write(unsigned char value) { main_.stream().Fill(At(0), value, 1); }
  void CopyBeside(bool follows_main) {
    link_->Issue([this] { link_->context().stream->Copy(At(1), place_, At(0), place_, 1); },
                 follows_main);
  }
  // What the main stream finds in a byte.
  char Found(size_t i) {
    char found = 0;
    main_.stream().Copy(&found, Place::Cpu(), At(i), place_, 1);
    main_.Wait();
    return found;
  }

  const Place place_ = EmulatedPlace();
  DeviceLink main_{place_};
  // Its ranks still come.
  const std::unique_ptr<CommLink> link_ =
      MakeCommLink(&main_, std::make_shared<EchoCommunicator>());
  Buffer memory_{main_.device().allocator(), 2};
};

TEST_P(CommStreamTest, IsAnotherStream) {
  EXPECT_EQ(link_->context().place, place_);
  EXPECT_NE(link_->context().stream, &main_.stream());
}

TEST_P(CommStreamTest, WaitsForWhatTheMainStreamWasGivenBefore) {
  for (int run = 1; run < 20; ++run) {
    Write(static_cast<unsigned char>(run));
    CopyBeside(run != 1);
    link_->Finish();
    ASSERT_EQ(Found(1), run);
  }
}

TEST_P(CommStreamTest, NeedsNoWaitBehindItself) {
  Write(3);
  CopyBeside(true);
  link_->Issue([this] { link_->context().stream->Copy(At(0), place_, At(1), place_, 1); }, false);
  link_->Await(2);
  EXPECT_EQ(Found(0), 3);
}

TEST_P(CommStreamTest, HasTheMainStreamWaitBeforeItOverwrites) {
  for (int run = 1; run < 20; ++run) {
    Write(static_cast<unsigned char>(run));
    CopyBeside(true);
    link_->Await(1);
    Write(99);
    ASSERT_EQ(Found(1), run);
    link_->Finish();
  }
}

TEST_P(CommStreamTest, TheHostMayWait) {
  Write(4);
  CopyBeside(true);
  link_->WaitQuietly();
  EXPECT_EQ(Found(1), 4);
}

TEST_P(CommStreamTest, ThrowsAtOnceWhatIssuingThrows) {
  EXPECT_THAT(ErrorText([&] { link_->Issue([] { Throw(ErrorCode::kIo, "no such rank"); }, true); }),
              HasSubstr("no such rank"));
  link_->WaitQuietly();
  Write(5);
  CopyBeside(true);
  link_->Finish();
  EXPECT_EQ(Found(1), 5);
}

// 0: streams run as late as possible.
INSTANTIATE_TEST_SUITE_P(Seeds, CommStreamTest, ::testing::Range(uint64_t{0}, uint64_t{12}));

// ---- when there is one

DataParallelOptions OptionsOf(int32_t ranks, Overlap overlap) {
  return {.communicator = MakeThreadRanks(ranks)[0], .overlap = overlap};
}

TEST(OverlapsCollectives, NeedsOtherRanks) {
  EXPECT_FALSE(OverlapsCollectives({.overlap = Overlap::kOn}, Place::Cpu()));
  EXPECT_FALSE(OverlapsCollectives(OptionsOf(1, Overlap::kOn), Place::Cpu()));
  EXPECT_TRUE(OverlapsCollectives(OptionsOf(2, Overlap::kOn), Place::Cpu()));
  EXPECT_FALSE(OverlapsCollectives(OptionsOf(2, Overlap::kOff), Place::Cpu()));
}

TEST(OverlapsCollectives, NeedsSomeCoresForEachRankOnTheCpu) {
  const DataParallelOptions two = OptionsOf(2, Overlap::kAuto);
  const int32_t cores = CoresOfRank(two.communicator->world());
  EXPECT_EQ(OverlapsCollectives(two, Place::Cpu()), cores >= 4);
  const auto of_host = static_cast<int32_t>(std::thread::hardware_concurrency());
  EXPECT_FALSE(OverlapsCollectives(OptionsOf(of_host / 4 + 1, Overlap::kAuto), Place::Cpu()));
}

TEST(OverlapsCollectives, NeedsNoCoresOnADevice) {
  EXPECT_TRUE(OverlapsCollectives(OptionsOf(2, Overlap::kAuto), EmulatedPlace()));
  EXPECT_FALSE(OverlapsCollectives(OptionsOf(2, Overlap::kOff), EmulatedPlace()));
}

}  // namespace
}  // namespace skiff
