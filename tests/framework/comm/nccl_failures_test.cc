// What ranks on emulated devices say if there is no NCCL, or if it fails. Each test has a process
// of its own, since it sets options of the emulation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "framework/comm/activity_scope.h"
#include "framework/comm/nccl_communicator.h"
#include "framework/comm/threads_communicator.h"
#include "memory/allocator.h"
#include "memory/device.h"
#include "memory/places.h"
#include "tests/harness/thread_ranks.h"

namespace skiff {
namespace {

using ::testing::AllOf;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;

// Sums until that fails.
void SumAsLongAsPossible(const std::shared_ptr<Communicator>& host) {
  const Place place = Place::Cuda(host->world().rank);
  const auto communicator = MakeNcclRank(host, place);
  const auto stream = DeviceOf(place).MakeStream();
  const auto event = DeviceOf(place).MakeEvent();
  const Buffer numbers(AllocatorOf(place), 400);
  const std::string activity = "c_allreduce_sum, step 8";
  stream->Fill(numbers.data(), 0, 400);
  for (int i = 0; i < 10; ++i) {
    {
      const ActivityScope scope(communicator.get(), &activity);
      communicator->Sum(numbers.data(), 100, DType::kFloat32, stream.get());
    }
    stream->Record(event.get());
    while (!event->HasPassed()) communicator->Check();
  }
}

// Prints what the ranks throw with these options.
[[noreturn]] void PrintErrors(const char* options) {
  setenv("SKIFF_CUDA_EMULATION", options, 1);
  const auto errors = RunOnThreadRanks(2, {}, [](Communicator* own) {
    SumAsLongAsPossible(std::shared_ptr<Communicator>(std::shared_ptr<void>(), own));
  });
  for (const std::string& error : errors) std::fprintf(stderr, "<%s>\n", error.c_str());
  std::exit(0);
}

class NcclFailures : public ::testing::Test {
 protected:
  // Fork alone would leave the streams' threads behind.
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(NcclFailures, WithoutTheLibraryAllRanksSayWhatToInstall) {
  const std::string text =
      "<rank 0: libnccl.so.2 lacks ncclGetVersion: expected NCCL 2.14 or newer, such as the "
      "package libnccl2>\n";
  EXPECT_EXIT(PrintErrors("has_nccl=0"), ExitedWithCode(0), HasSubstr(text + text));
}

// The rank whose operation fails, and the other, which would wait for it for ever. A call says so
// that has the activity, or a wait behind it.
TEST_F(NcclFailures, AllRanksLearnOfAFailureOfNccl) {
  EXPECT_EXIT(PrintErrors("nccl_fails_at=5"), ExitedWithCode(0),
              AllOf(HasSubstr(": unhandled system error"),
                    HasSubstr(": remote process exited or there was a network error"),
                    HasSubstr("<rank 0: nccl"), HasSubstr("<rank 1: nccl"),
                    HasSubstr("c_allreduce_sum, step 8>")));
}

TEST_F(NcclFailures, WithoutOneAllRanksGoOn) {
  EXPECT_EXIT(PrintErrors(""), ExitedWithCode(0), HasSubstr("<>\n<>\n"));
}

// Two ranks can't share a device.
TEST_F(NcclFailures, RanksAreToldThatThereAreTooFewDevices) {
  const std::string text = "<rank 1: place cuda:1: there is one CUDA device, expected cuda:0>\n";
  EXPECT_EXIT(PrintErrors("devices=1"), ExitedWithCode(0), HasSubstr(text + text));
}

}  // namespace
}  // namespace skiff
