// What the stand-in for NCCL does, and what it finds. One thread drives two ranks; the work of a
// stream that nobody waits for is done by the stream's own thread.
#include "tools/cuda/emulation/libraries/nccl_stand_in.h"

#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>
#include <string_view>
#include <vector>

#include "framework/comm/nccl_declarations.h"

namespace skiff::cuda_emulation {
namespace {

using ::testing::Each;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;

template <class Function, class... Arguments>
int Call(const char* name, Arguments... arguments) {
  return reinterpret_cast<Function*>(NcclFunction(name))(arguments...);
}

int BeginGroup() { return Call<nccl::GroupFunction>("ncclGroupStart"); }
int EndGroup() { return Call<nccl::GroupFunction>("ncclGroupEnd"); }

constexpr size_t kCount = 1000;

// A rank with a device, a stream and some numbers.
class Rank {
 public:
  Rank(int device, float value) : device_(device) {
    cudaSetDevice(device_);
    const std::vector<float> values(kCount, value);
    EXPECT_EQ(cudaMalloc(&data_, kCount * sizeof(float)), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(data_, values.data(), kCount * sizeof(float), cudaMemcpyDefault),
              cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }

  int Join(const nccl::UniqueId& id, int ranks, int number) {
    cudaSetDevice(device_);
    nccl::Config config;
    return Call<nccl::InitFunction>("ncclCommInitRankConfig", &comm_, ranks, id, number, &config);
  }
  // Returns the state when nothing is in progress any more.
  int Await() const {
    int state = nccl::kInProgress;
    while (state == nccl::kInProgress) {
      EXPECT_EQ(Call<nccl::AsyncErrorFunction>("ncclCommGetAsyncError", comm_, &state),
                nccl::kSuccess);
    }
    return state;
  }
  int Send(int to, size_t count = kCount, int type = nccl::kFloat32) const {
    return Call<nccl::SendFunction>("ncclSend", static_cast<const void*>(data_), count, type, to,
                                    comm_, stream_);
  }
  int Receive(int from, size_t count = kCount, int type = nccl::kFloat32) const {
    return Call<nccl::ReceiveFunction>("ncclRecv", static_cast<void*>(data_), count, type, from,
                                       comm_, stream_);
  }
  int Sum(size_t count = kCount) const { return Sum(data_, stream_, count); }
  int Sum(float* data, cudaStream_t stream, size_t count = kCount) const {
    return Call<nccl::AllReduceFunction>("ncclAllReduce", static_cast<const void*>(data),
                                         static_cast<void*>(data), count, nccl::kFloat32,
                                         nccl::kSum, comm_, stream);
  }
  int End(const char* call) const { return Call<nccl::CommFunction>(call, comm_); }

  // Waits for the stream.
  std::vector<float> Values() const {
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    std::vector<float> values(kCount);
    cudaSetDevice(device_);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, kCount * sizeof(float), cudaMemcpyDefault),
              cudaSuccess);
    return values;
  }
  void SetValues(const std::vector<float>& values) const {
    cudaSetDevice(device_);
    EXPECT_EQ(cudaMemcpy(data_, values.data(), kCount * sizeof(float), cudaMemcpyDefault),
              cudaSuccess);
  }
  float* data() const { return data_; }
  cudaStream_t stream() const { return stream_; }

 private:
  const int device_;
  float* data_ = nullptr;
  cudaStream_t stream_ = nullptr;
  nccl::Comm comm_ = nullptr;
};

nccl::UniqueId NewId() {
  nccl::UniqueId id;
  EXPECT_EQ(Call<nccl::GetUniqueIdFunction>("ncclGetUniqueId", &id), nccl::kSuccess);
  return id;
}

// Ranks on the first devices, with the numbers 1, 2, …. Nothing is destroyed, since the stream of a
// test that fails may never end.
class Ranks {
 public:
  explicit Ranks(int count) {
    const nccl::UniqueId id = NewId();
    for (int i = 0; i < count; ++i) {
      ranks_.emplace_back(i, static_cast<float>(i + 1));
      EXPECT_EQ(ranks_.back().Join(id, count, i), nccl::kInProgress);
    }
    for (const Rank& rank : ranks_) EXPECT_EQ(rank.Await(), nccl::kSuccess);
  }
  const Rank& operator[](size_t i) const { return ranks_[i]; }
  auto begin() const { return ranks_.begin(); }
  auto end() const { return ranks_.end(); }

  // Does a call of a rank, which may still be in progress when it returns.
  static void Do(const Rank& rank, int result) {
    EXPECT_TRUE(result == nccl::kSuccess || result == nccl::kInProgress) << result;
    EXPECT_EQ(rank.Await(), nccl::kSuccess);
  }
  void SumUp() const {
    for (const Rank& rank : ranks_) Do(rank, rank.Sum());
  }

 private:
  std::vector<Rank> ranks_;
};

void Do(const Rank& rank, int result) { Ranks::Do(rank, result); }

class NcclStandIn : public ::testing::Test {
 protected:
  // Fork alone would leave the streams' threads behind.
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(NcclStandIn, AddsUp) {
  const Ranks ranks(2);
  for (const float sum : {3.0F, 6.0F}) {
    ranks.SumUp();
    for (const Rank& rank : ranks) EXPECT_THAT(rank.Values(), Each(sum));
  }
}

TEST_F(NcclStandIn, MovesMessages) {
  const Ranks ranks(2);
  Do(ranks[0], ranks[0].Send(1));
  Do(ranks[1], ranks[1].Receive(0));
  EXPECT_THAT(ranks[1].Values(), Each(1));
}

// Else the messages of two ranks to each other would wait for each other.
TEST_F(NcclStandIn, MessagesOfAGroupGoAtTheSameTime) {
  const Ranks ranks(2);
  for (int i = 0; i < 2; ++i) {
    const Rank& rank = ranks[static_cast<size_t>(i)];
    EXPECT_EQ(BeginGroup(), nccl::kSuccess);
    EXPECT_EQ(BeginGroup(), nccl::kSuccess) << "in another group";
    EXPECT_EQ(rank.Send(1 - i, 10), nccl::kSuccess);
    EXPECT_EQ(EndGroup(), nccl::kSuccess);
    EXPECT_EQ(rank.Receive(1 - i, 10), nccl::kSuccess);
    Do(rank, EndGroup());
  }
  for (const Rank& rank : ranks) rank.Values();
  EXPECT_EQ(EndGroup(), nccl::kInvalidUsage) << "no group";
}

TEST_F(NcclStandIn, WorkIsDoneInTheOrderOfItsStream) {
  const Ranks ranks(2);
  cudaSetDevice(0);
  ASSERT_EQ(cudaMemsetAsync(ranks[0].data(), 0, kCount * sizeof(float), ranks[0].stream()),
            cudaSuccess);
  ranks.SumUp();
  cudaSetDevice(1);
  ASSERT_EQ(cudaMemsetAsync(ranks[1].data(), 0, 4, ranks[1].stream()), cudaSuccess);
  EXPECT_THAT(ranks[0].Values(), Each(2));
  EXPECT_EQ(ranks[1].Values()[0], 0);
  EXPECT_EQ(ranks[1].Values()[1], 2);
}

// 1e8 + 1 is 1e8 in float32, so 1e8 - 1e8 + 1 depends on the order. All ranks have the same bits.
TEST_F(NcclStandIn, AddsInOrdersThatAreDrawn) {
  const Ranks ranks(3);
  std::set<float> sums;
  for (int repetition = 0; repetition < 4; ++repetition) {
    const float summands[] = {1e8F, -1e8F, 1};
    for (size_t i = 0; i < 3; ++i) ranks[i].SetValues(std::vector<float>(kCount, summands[i]));
    ranks.SumUp();
    const std::vector<float> values = ranks[0].Values();
    sums.insert(values.begin(), values.end());
    EXPECT_EQ(ranks[1].Values(), values);
    EXPECT_EQ(ranks[2].Values(), values);
  }
  EXPECT_EQ(sums, (std::set<float>{0, 1}));
}

TEST_F(NcclStandIn, RefusesMemoryAndStreamsOfAnotherDevice) {
  const Ranks ranks(2);
  EXPECT_EQ(ranks[0].Sum(ranks[1].data(), ranks[0].stream()), nccl::kInvalidArgument);
  EXPECT_EQ(ranks[0].Sum(ranks[0].data(), ranks[1].stream()), nccl::kInvalidArgument);
  EXPECT_EQ(ranks[0].Sum(nullptr, ranks[0].stream()), nccl::kInvalidArgument);
  EXPECT_EQ(ranks[0].Sum(kCount + 1), nccl::kInvalidArgument) << "behind the memory";
  std::vector<float> host(kCount);
  EXPECT_EQ(ranks[0].Sum(host.data(), ranks[0].stream()), nccl::kInvalidArgument);
  ranks.SumUp();
  for (const Rank& rank : ranks) EXPECT_THAT(rank.Values(), Each(3));
}

TEST_F(NcclStandIn, RefusesMessagesThatNobodyCanHave) {
  const Ranks ranks(2);
  EXPECT_EQ(ranks[0].Send(2), nccl::kInvalidArgument);
  EXPECT_EQ(ranks[0].Send(-1), nccl::kInvalidArgument);
  EXPECT_EQ(ranks[0].Send(0), nccl::kInvalidArgument) << "to itself";
  EXPECT_EQ(ranks[0].Send(1, 1, 12), nccl::kInvalidArgument) << "of no type";
}

TEST_F(NcclStandIn, AGroupWithARefusedCallDoesNothing) {
  const Ranks ranks(2);
  BeginGroup();
  EXPECT_EQ(ranks[0].Send(1), nccl::kSuccess);
  EXPECT_EQ(ranks[0].Send(2), nccl::kInvalidArgument);
  EXPECT_EQ(EndGroup(), nccl::kInvalidArgument);
  BeginGroup();
  EXPECT_EQ(ranks[0].Send(1), nccl::kSuccess);
  EXPECT_EQ(ranks[0].Sum(), nccl::kInvalidUsage) << "a sum among messages";
  EXPECT_EQ(EndGroup(), nccl::kInvalidUsage);
  for (const Rank& rank : ranks) rank.Values();
}

TEST_F(NcclStandIn, RefusesTwoRanksWithOneDevice) {
  const nccl::UniqueId id = NewId();
  Rank first(0, 1);
  Rank second(0, 1);
  EXPECT_EQ(first.Join(id, 2, 0), nccl::kInProgress);
  EXPECT_EQ(second.Join(id, 2, 1), nccl::kInvalidUsage);
  EXPECT_EQ(Rank(1, 1).Join(id, 2, 0), nccl::kInvalidArgument) << "a rank that is there";
  EXPECT_EQ(Rank(1, 1).Join(id, 2, 2), nccl::kInvalidArgument) << "a rank too many";
  EXPECT_EQ(Rank(1, 1).Join(id, 3, 1), nccl::kInvalidArgument) << "among others";
  EXPECT_EQ(Rank(1, 1).Join({}, 2, 1), nccl::kInvalidArgument) << "an id that nobody has made";
}

// A state that isn't asked for stays in progress.
TEST_F(NcclStandIn, RefusesCallsWhileOneIsInProgress) {
  const nccl::UniqueId id = NewId();
  Rank alone(0, 1);
  EXPECT_EQ(alone.Join(id, 2, 0), nccl::kInProgress);
  EXPECT_EQ(alone.Sum(), nccl::kInvalidUsage);
  const Ranks ranks(2);
  int in_progress = 0;
  for (int sum = 0; sum < 20; ++sum) {
    if (ranks[0].Sum() == nccl::kInProgress) {
      ++in_progress;
      EXPECT_EQ(ranks[0].Sum(), nccl::kInvalidUsage);
    }
    ranks[0].Await();
    Do(ranks[1], ranks[1].Sum());
  }
  EXPECT_GT(in_progress, 0);
  EXPECT_LT(in_progress, 20);
  for (const Rank& rank : ranks) rank.Values();
}

TEST_F(NcclStandIn, EndsWhenItsWorkIsDone) {
  const Ranks ranks(2);
  ranks.SumUp();
  for (const Rank& rank : ranks) {
    EXPECT_EQ(rank.End("ncclCommDestroy"), nccl::kInvalidUsage) << "not finalized";
    Do(rank, rank.End("ncclCommFinalize"));
    EXPECT_EQ(rank.End("ncclCommDestroy"), nccl::kSuccess);
    EXPECT_THAT(rank.Values(), Each(3));
  }
}

// The other rank has never called.
TEST_F(NcclStandIn, AnAbortEndsTheWorkThatWaits) {
  const Ranks ranks(2);
  Do(ranks[0], ranks[0].Sum());
  EXPECT_EQ(ranks[0].End("ncclCommAbort"), nccl::kSuccess);
  EXPECT_THAT(ranks[0].Values(), Each(1));
}

// In a process of its own, as every failure makes the process fail.
void ExpectFailure(const std::function<void()>& function, const char* text) {
  EXPECT_EXIT(
      {
        function();
        std::exit(0);
      },
      ExitedWithCode(1), HasSubstr(text));
}

// What a rank sees when another has done something else than it: all work ends.
void ExpectEnds(const Ranks& ranks) {
  for (const Rank& rank : ranks) rank.Values();
  for (const Rank& rank : ranks) {
    if (rank.Await() != nccl::kInvalidUsage) std::fputs("the rank knows nothing\n", stderr);
  }
}

TEST_F(NcclStandIn, FindsSumsThatDoNotFit) {
  ExpectFailure(
      [] {
        const Ranks ranks(2);
        Do(ranks[0], ranks[0].Sum(5));
        Do(ranks[1], ranks[1].Sum(7));
        ExpectEnds(ranks);
      },
      "NCCL: rank 0 calls ncclAllReduce, 5 numbers of 4 bytes, rank 1 ncclAllReduce, 7 numbers");
}

TEST_F(NcclStandIn, FindsMessagesThatDoNotFit) {
  ExpectFailure(
      [] {
        const Ranks ranks(2);
        Do(ranks[0], ranks[0].Send(1, 5));
        Do(ranks[1], ranks[1].Receive(0, 6));
        ExpectEnds(ranks);
      },
      "NCCL: rank 0 calls ncclSend to rank 1, 5 numbers of 4 bytes, rank 1 ncclRecv from rank 0, "
      "6");
  ExpectFailure(
      [] {
        const Ranks ranks(2);
        Do(ranks[0], ranks[0].Send(1, 4));
        Do(ranks[1], ranks[1].Receive(0, 4, nccl::kFloat64));
        ExpectEnds(ranks);
      },
      "4 numbers of 4 bytes, rank 1 ncclRecv from rank 0, 4 numbers of 8 bytes");
}

TEST_F(NcclStandIn, FindsRanksThatWaitForEachOther) {
  ExpectFailure(
      [] {
        const Ranks ranks(2);
        for (int i = 0; i < 2; ++i) {
          const Rank& rank = ranks[static_cast<size_t>(i)];
          Do(rank, rank.Send(1 - i, 5));
          Do(rank, rank.Receive(1 - i, 5));
        }
        ExpectEnds(ranks);
      },
      "NCCL: all ranks wait: rank 0 in ncclSend to rank 1, 5 numbers of 4 bytes, rank 1 in "
      "ncclSend");
  ExpectFailure(
      [] {
        const Ranks ranks(2);
        Do(ranks[0], ranks[0].Sum());
        Do(ranks[1], ranks[1].Receive(0));
        ExpectEnds(ranks);
      },
      "all ranks wait: rank 0 in ncclAllReduce");
}

TEST_F(NcclStandIn, FindsCallsAfterTheEnd) {
  ExpectFailure(
      [] {
        const Ranks ranks(2);
        ranks[0].End("ncclCommAbort");
        if (ranks[0].Sum() != nccl::kInvalidArgument) std::fputs("taken\n", stderr);
      },
      "NCCL: ncclAllReduce: a communicator that is none, or was destroyed or aborted");
}

// Whether both ranks learn that their second operation, as the option says, has failed, and whether
// their streams are busy until they abort.
bool FailsOnBothRanks() {
  const Ranks ranks(2);
  for (const Rank& rank : ranks) {
    if (rank.Sum() == nccl::kInProgress) rank.Await();
  }
  while (ranks[0].Await() == nccl::kSuccess) {
  }
  const std::set<int> states{ranks[0].Await(), ranks[1].Await()};
  bool is_right = states == std::set<int>{nccl::kSystemError, nccl::kRemoteError} &&
                  ranks[0].Sum() == ranks[0].Await();
  for (const Rank& rank : ranks) {
    is_right &= cudaStreamQuery(rank.stream()) == cudaErrorNotReady;
    rank.End("ncclCommAbort");
    rank.Values();
  }
  return is_right;
}

// A cable is pulled out, say. The work never ends by itself.
TEST_F(NcclStandIn, FailsWhenToldTo) {
  EXPECT_EXIT(
      {
        setenv("SKIFF_CUDA_EMULATION", "nccl_fails_at=2", 1);
        std::exit(FailsOnBothRanks() ? 0 : 1);
      },
      ExitedWithCode(0), "");
}

}  // namespace
}  // namespace skiff::cuda_emulation
