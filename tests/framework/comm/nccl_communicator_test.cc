// Ranks with a device each. On a machine with several GPUs the ranks are real; emulated devices
// have a stand-in for NCCL, which finds wrong calls
// (tools/cuda/emulation/libraries/nccl_stand_in.h).
#include "framework/comm/nccl_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/str_cat.h"
#include "framework/comm/activity_scope.h"
#include "framework/comm/gather.h"
#include "framework/comm/threads_communicator.h"
#include "memory/allocator.h"
#include "memory/cuda_device.h"
#include "memory/device.h"
#include "memory/places.h"
#include "operators/common/half.h"
#include "tests/harness/error_text.h"
#include "tests/harness/thread_ranks.h"

namespace skiff {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr double kTimeLimit = 600;

// A rank of NCCL with a stream.
class DeviceRank {
 public:
  explicit DeviceRank(const std::shared_ptr<Communicator>& host, double time_limit = kTimeLimit)
      : host_(host),
        place_(Place::Cuda(host->world().rank)),
        communicator_(MakeNcclRank(host, place_, time_limit)),
        stream_(DeviceOf(place_).MakeStream()) {}

  Communicator& communicator() { return *communicator_; }
  DeviceStream* stream() { return stream_.get(); }
  int32_t rank() const { return communicator_->world().rank; }
  int32_t size() const { return communicator_->world().size; }

  // Returns memory of the device, with the bytes of `values`.
  template <typename T>
  std::unique_ptr<Buffer> OnDevice(const std::vector<T>& values) {
    const auto bytes = static_cast<int64_t>(values.size() * sizeof(T));
    auto buffer = std::make_unique<Buffer>(AllocatorOf(place_), bytes);
    stream_->Copy(buffer->data(), place_, values.data(), Place::Cpu(), static_cast<size_t>(bytes));
    stream_->Wait();
    return buffer;
  }
  // Waits for the stream.
  template <typename T>
  std::vector<T> ToHost(const Buffer& buffer) {
    std::vector<T> values(static_cast<size_t>(buffer.bytes()) / sizeof(T));
    stream_->Copy(values.data(), Place::Cpu(), buffer.data(), place_,
                  static_cast<size_t>(buffer.bytes()));
    stream_->Wait();
    return values;
  }
  // Waits until all ranks have come here.
  void MeetOthers() const { GatherTexts(host_.get(), ""); }
  // Waits for the stream as long as no rank has failed.
  void WaitAndCheck() {
    const auto event = DeviceOf(place_).MakeEvent();
    stream_->Record(event.get());
    while (!event->HasPassed()) {
      communicator_->Check();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  const std::shared_ptr<Communicator> host_;
  const Place place_;
  const std::shared_ptr<Communicator> communicator_;
  const std::unique_ptr<DeviceStream> stream_;
};

std::shared_ptr<Communicator> Unowned(Communicator* own) {
  return std::shared_ptr<Communicator>(std::shared_ptr<void>(), own);
}

// Calls function(rank) on each of `size` ranks, which are threads. Returns by rank what it throws.
std::vector<std::string> OnDeviceRanks(int32_t size,
                                       const std::function<void(DeviceRank&)>& function) {
  return RunOnThreadRanks(size, {}, [&](Communicator* own) {
    DeviceRank rank(Unowned(own));
    function(rank);
  });
}

class NcclRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasCudaDevice()) GTEST_SKIP() << "no device";
  }
  // As many ranks as there are devices, up to five.
  const int32_t most_ = std::min(CudaDeviceCount(), 5);
};

class SeveralNcclRanks : public NcclRanks {
 protected:
  void SetUp() override {
    if (most_ < 2) GTEST_SKIP() << "fewer than two devices";
  }
};

// What a rank sends to another in a round: few bytes, many, or none.
std::vector<uint8_t> Contents(int32_t from, int32_t to, int32_t round) {
  const int bytes = (from * 7 + to * 5 + round * 3) % 4 * 1001;
  return std::vector<uint8_t>(static_cast<size_t>(bytes),
                              static_cast<uint8_t>(from * 50 + to * 10 + round));
}

// Messages between a rank and all ranks, itself included, in its device's memory.
class Round {
 public:
  Round(DeviceRank* rank, int32_t number) : rank_(*rank), number_(number) {
    for (int32_t other = 0; other < rank_.size(); ++other) {
      const std::vector<uint8_t> sent = Contents(rank_.rank(), other, number_);
      const std::vector<uint8_t> received(Contents(other, rank_.rank(), number_).size());
      memory_.push_back(rank_.OnDevice(sent));
      out_.push_back(
          {.to = other, .data = memory_.back()->data(), .bytes = memory_.back()->bytes()});
      memory_.push_back(rank_.OnDevice(received));
      in_.push_back(
          {.from = other, .data = memory_.back()->data(), .bytes = memory_.back()->bytes()});
    }
  }
  void Exchange() { rank_.communicator().Exchange(out_, in_, rank_.stream()); }
  void ExpectReceived() {
    for (int32_t other = 0; other < rank_.size(); ++other) {
      EXPECT_EQ(rank_.ToHost<uint8_t>(*memory_[static_cast<size_t>(2 * other + 1)]),
                Contents(other, rank_.rank(), number_))
          << "from rank " << other << " to rank " << rank_.rank();
    }
  }

 private:
  DeviceRank& rank_;
  const int32_t number_;
  std::vector<std::unique_ptr<Buffer>> memory_;
  std::vector<OutMessage> out_;
  std::vector<InMessage> in_;
};

// The host doesn't wait between the rounds.
TEST_F(NcclRanks, ExchangeAllToAll) {
  for (int32_t size = 1; size <= most_; ++size) {
    const auto errors = OnDeviceRanks(size, [](DeviceRank& rank) {
      std::vector<std::unique_ptr<Round>> rounds;
      for (int32_t i = 0; i < 4; ++i) rounds.push_back(std::make_unique<Round>(&rank, i));
      for (const auto& round : rounds) round->Exchange();
      for (const auto& round : rounds) round->ExpectReceived();
    });
    EXPECT_THAT(errors, Each("")) << size << " ranks";
  }
}

TEST_F(SeveralNcclRanks, CountTheBytesForOtherRanks) {
  const auto errors = OnDeviceRanks(2, [](DeviceRank& rank) {
    Round round(&rank, 1);
    round.Exchange();
    EXPECT_EQ(rank.communicator().bytes_sent(), Contents(rank.rank(), 1 - rank.rank(), 1).size());
    round.ExpectReceived();
  });
  EXPECT_THAT(errors, Each(""));
}

// Of the numbers rank + 1/3, rank + 2/3, … The largest error is a few units in the last place of
// the sum, and all ranks have the same bits.
template <typename T>
void ExpectSums(int32_t ranks, double epsilon) {
  constexpr int kCount = 333;
  const auto summand = [](int32_t rank, int i) { return static_cast<T>(rank + (i + 1) / 3.0F); };
  std::vector<std::vector<T>> sums(static_cast<size_t>(ranks));
  const auto errors = OnDeviceRanks(ranks, [&](DeviceRank& rank) {
    std::vector<T> values(kCount);
    for (int i = 0; i < kCount; ++i) values[static_cast<size_t>(i)] = summand(rank.rank(), i);
    const auto buffer = rank.OnDevice(values);
    rank.communicator().Sum(buffer->data(), kCount, kDTypeOf<T>, rank.stream());
    sums[static_cast<size_t>(rank.rank())] = rank.ToHost<T>(*buffer);
  });
  EXPECT_THAT(errors, Each(""));
  using Wide = WideType<T>;
  for (size_t i = 0; i < kCount; ++i) {
    double expected = 0;
    for (int32_t rank = 0; rank < ranks; ++rank) {
      expected += static_cast<double>(static_cast<Wide>(summand(rank, static_cast<int>(i))));
    }
    EXPECT_NEAR(static_cast<double>(static_cast<Wide>(sums[0][i])), expected,
                expected * epsilon * ranks);
  }
  for (const std::vector<T>& other : sums) {
    EXPECT_EQ(std::memcmp(other.data(), sums[0].data(), kCount * sizeof(T)), 0);
  }
}

TEST_F(NcclRanks, Sum) {
  for (int32_t size = 1; size <= most_; ++size) {
    ExpectSums<float>(size, 0x1p-24);
    ExpectSums<double>(size, 0x1p-53);
    ExpectSums<Float16>(size, 0x1p-11);
    ExpectSums<BFloat16>(size, 0x1p-8);
  }
}

// The sum reads what the stream has written before, and the copy reads the sum.
TEST_F(SeveralNcclRanks, WorkInTheOrderOfTheStream) {
  const auto errors = OnDeviceRanks(2, [](DeviceRank& rank) {
    const auto buffer = rank.OnDevice(std::vector<float>(100, 5));
    if (rank.rank() == 0) rank.stream()->Fill(buffer->data(), 0, 200);
    for (int i = 0; i < 2; ++i) {
      rank.communicator().Sum(buffer->data(), 100, DType::kFloat32, rank.stream());
    }
    const std::vector<float> sums = rank.ToHost<float>(*buffer);
    EXPECT_EQ(sums[0], 10);
    EXPECT_EQ(sums[99], 20);
  });
  EXPECT_THAT(errors, Each(""));
}

TEST_F(NcclRanks, RefuseWrongCallsAndGoOn) {
  const auto errors = OnDeviceRanks(1, [](DeviceRank& rank) {
    Communicator& own = rank.communicator();
    const auto buffer = rank.OnDevice(std::vector<float>(1, 5));
    EXPECT_EQ(InvalidArgumentText([&] { own.Sum(buffer->data(), 1, DType::kFloat32, nullptr); }),
              "no stream for ranks with memory on cuda:0, expected a stream of the device");
    EXPECT_EQ(InvalidArgumentText([&] { own.Exchange({}, {}, nullptr); }),
              "no stream for ranks with memory on cuda:0, expected a stream of the device");
    EXPECT_EQ(
        InvalidArgumentText([&] { own.Sum(buffer->data(), -1, DType::kFloat32, rank.stream()); }),
        "sum of -1 numbers, expected at least 0");
    EXPECT_EQ(ErrorText(ErrorCode::kUnimplemented,
                        [&] { own.Sum(buffer->data(), 1, DType::kInt32, rank.stream()); }),
              "sum of int32 on a device, expected a float");
    EXPECT_THAT(InvalidArgumentText([&] {
                  own.Exchange({{{.to = 1, .data = buffer->data(), .bytes = 4}}}, {},
                               rank.stream());
                }),
                HasSubstr("message to rank 1, expected a rank from 0 to 0"));
    own.Sum(nullptr, 0, DType::kFloat32, rank.stream());
    own.Sum(buffer->data(), 1, DType::kFloat32, rank.stream());
    EXPECT_EQ(rank.ToHost<float>(*buffer)[0], 5);
    own.Check();
  });
  EXPECT_THAT(errors, Each(""));
}

TEST_F(NcclRanks, RefuseThePlaceOfNoDevice) {
  const std::shared_ptr<Communicator> host = MakeThreadRanks(1)[0];
  EXPECT_EQ(InvalidArgumentText([&] { MakeNcclRank(host, Place::Cpu()); }),
            "place cpu: expected a device");
  EXPECT_EQ(InvalidArgumentText([&] { MakeNcclRank(host, Place::Cuda(), 0); }),
            "time limit of 0 s, expected more than 0");
}

// Rank 1 does something else, while the device of rank 0 waits for it in a sum.
TEST_F(SeveralNcclRanks, LearnOfAnAbort) {
  const auto errors = OnDeviceRanks(2, [](DeviceRank& rank) {
    const auto buffer = rank.OnDevice(std::vector<float>(100, 5));
    if (rank.rank() == 1) {
      rank.MeetOthers();
      rank.communicator().Abort("the data are wrong");
      return rank.communicator().Check();
    }
    const auto sum = [&] {
      rank.communicator().Sum(buffer->data(), 100, DType::kFloat32, rank.stream());
    };
    sum();
    rank.MeetOthers();
    EXPECT_EQ(ErrorText(ErrorCode::kIo, [&] { rank.WaitAndCheck(); }),
              "rank 1 has aborted: the data are wrong");
    rank.stream()->Wait();
    EXPECT_EQ(ErrorText(ErrorCode::kIo, sum), "rank 1 has aborted: the data are wrong");
  });
  EXPECT_EQ(errors[0], "");
  EXPECT_EQ(errors[1], "rank 1 has aborted: the data are wrong");
}

// Rank 1 is stopped: it never calls Sum. The device of rank 0 would wait for ever, and nobody but
// its own host knows how long it has waited.
TEST_F(SeveralNcclRanks, EndTheWorkThatHasWaitedForTheLimit) {
  const auto errors = OnDeviceRanks(2, [](DeviceRank& rank) {
    const auto buffer = rank.OnDevice(std::vector<float>(100, 5));
    if (rank.rank() == 1) return rank.MeetOthers();
    Communicator& own = rank.communicator();
    const auto sum = [&] { own.Sum(buffer->data(), 100, DType::kFloat32, rank.stream()); };
    {
      const std::string activity = "c_allreduce_sum of w, step 8";
      const ActivityScope scope(&own, &activity);
      sum();
    }
    own.CheckWait(0.1);
    own.CheckWait(kTimeLimit);
    const std::string message =
        "rank 0 has waited 600 s for other ranks; its device has work up to c_allreduce_sum of w, "
        "step 8";
    EXPECT_EQ(ErrorText(ErrorCode::kIo, [&] { own.CheckWait(kTimeLimit + 0.1); }), message);
    rank.stream()->Wait();
    EXPECT_EQ(ErrorText(ErrorCode::kIo, sum), message);
    EXPECT_EQ(ErrorText(ErrorCode::kIo, [&] { own.CheckWait(0); }), message);
    rank.MeetOthers();
  });
  EXPECT_THAT(errors, Each(""));
}

// Rank 1 knows the id, and then does something else.
TEST_F(SeveralNcclRanks, DoNotWaitForEverForARankThatDoesNotCome) {
  const auto errors = RunOnThreadRanks(2, {}, [&](Communicator* own) {
    if (own->world().rank == 0) return DeviceRank(Unowned(own), 0.2).stream()->Wait();
    GatherTexts(own, "");
    char id[128];
    own->Exchange({}, {{{.from = 0, .data = id, .bytes = sizeof(id)}}}, nullptr);
    GatherTexts(own, "");  // stays until rank 0 has given up
  });
  EXPECT_EQ(errors[0], "rank 0 has waited 0.2 s for other ranks in ncclCommInitRankConfig");
}

}  // namespace
}  // namespace skiff
