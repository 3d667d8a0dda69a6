#include "framework/comm/threads_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "tests/framework/comm/drawn_exchange.h"
#include "tests/harness/error_text.h"
#include "tests/harness/thread_ranks.h"

namespace skiff {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

OutMessage To(int32_t rank, const std::vector<uint8_t>& bytes) {
  return {.to = rank, .data = bytes.data(), .bytes = static_cast<int64_t>(bytes.size())};
}

InMessage From(int32_t rank, std::vector<uint8_t>* bytes) {
  return {.from = rank, .data = bytes->data(), .bytes = static_cast<int64_t>(bytes->size())};
}

// Sends a message of `sent` bytes from a rank to another, and expects `expected` bytes there.
void SendOne(Communicator* own, int32_t from, int32_t to, int64_t sent, int64_t expected) {
  std::vector<uint8_t> out(sent, 7);
  std::vector<uint8_t> in(expected);
  if (own->world().rank == from) own->Exchange({{To(to, out)}}, {}, nullptr);
  if (own->world().rank == to) own->Exchange({}, {{From(from, &in)}}, nullptr);
}

TEST(ThreadsCommunicator, KnowsItsPlaceAmongTheRanks) {
  const auto ranks = MakeThreadRanks(3);
  ASSERT_EQ(ranks.size(), 3u);
  EXPECT_EQ(ranks[2]->world().rank, 2);
  EXPECT_EQ(ranks[2]->world().size, 3);
  EXPECT_EQ(ranks[2]->world().local_rank, 2);
  EXPECT_EQ(ranks[2]->world().local_size, 3);
  EXPECT_EQ(ranks[2]->world().Text(), "rank 2");
  EXPECT_TRUE(ranks[2]->place().is_cpu());
}

TEST(ThreadsCommunicator, MovesAnyMessages) {
  for (int32_t size = 1; size <= 5; ++size) {
    for (const uint64_t seed : {0, 1, 2}) {
      const auto errors = RunOnThreadRanks(size, {.seed = seed}, [&](Communicator* own) {
        int64_t bytes = 0;
        for (uint64_t call = 0; call < 40; ++call) {
          const DrawnExchange drawn(size, 5000, seed * 1000 + call);
          EXPECT_TRUE(drawn.Run(own));
          bytes += drawn.BytesToOthers(own->world().rank);
        }
        EXPECT_EQ(own->bytes_sent(), bytes);
      });
      EXPECT_THAT(errors, Each(""));
    }
  }
}

TEST(ThreadsCommunicator, AddsNumbersOfAllRanks) {
  for (int32_t size = 1; size <= 5; ++size) {
    const auto errors = RunOnThreadRanks(size, {.seed = 4}, [&](Communicator* own) {
      for (int64_t count = 0; count < 5; ++count) {
        std::vector<float> floats(count, own->world().rank + 0.5f);
        own->Sum(floats.data(), count, DType::kFloat32, nullptr);
        EXPECT_THAT(floats, Each(size * size / 2.0f));
        std::vector<double> doubles(count, own->world().rank + 0.5);
        own->Sum(doubles.data(), count, DType::kFloat64, nullptr);
        EXPECT_THAT(doubles, Each(size * size / 2.0));
      }
      EXPECT_EQ(own->bytes_sent(), 0);
    });
    EXPECT_THAT(errors, Each(""));
  }
}

// The sums of four ranks whose last bits depend on the order of the summands, from each rank.
std::vector<std::vector<float>> SumsOfRoundedNumbers(uint64_t seed) {
  std::vector<std::vector<float>> sums(4);
  RunOnThreadRanks(4, {.seed = seed}, [&](Communicator* own) {
    for (int32_t k = 0; k < 20; ++k) {
      float number = std::pow(10.0f, own->world().rank * 2) / (k + 3);
      own->Sum(&number, 1, DType::kFloat32, nullptr);
      sums[own->world().rank].push_back(number);
    }
  });
  return sums;
}

TEST(ThreadsCommunicator, AddsInDrawnOrdersThatAllRanksShare) {
  const auto sums = SumsOfRoundedNumbers(5);
  EXPECT_THAT(sums, Each(sums[0]));
  EXPECT_EQ(SumsOfRoundedNumbers(5), sums);
  EXPECT_NE(SumsOfRoundedNumbers(6), sums);
  EXPECT_THAT(SumsOfRoundedNumbers(0), Each(SumsOfRoundedNumbers(0)[0]));
}

TEST(ThreadsCommunicator, RefusesOtherBytesThanExpectedOnBothSides) {
  const std::string activity = "the sum of w, step 3";
  const auto errors = RunOnThreadRanks(3, {}, [&](Communicator* own) {
    own->set_activity(&activity);
    SendOne(own, 1, 2, 8, 12);
  });
  const std::string wanted =
      "rank 1 sends 8 bytes to rank 2, which expects 12 in the sum of w, step 3";
  EXPECT_THAT(errors, ElementsAre("", wanted, wanted));
}

TEST(ThreadsCommunicator, NamesTheRanksThatHaventCome) {
  const std::string activity = "the sum of w, step 3";
  const auto ranks = MakeThreadRanks(4, {.time_limit = 0.01});
  ranks[0]->set_activity(&activity);
  std::vector<uint8_t> sent(3);
  std::vector<std::vector<uint8_t>> in(4, std::vector<uint8_t>(3));
  const std::string error = ErrorText(ErrorCode::kIo, [&] {
    ranks[0]->Exchange({{To(2, sent), To(0, sent)}}, {{From(3, &in[3]), From(0, &in[0])}}, nullptr);
  });
  EXPECT_EQ(error, "rank 0 has waited 0.01 s for ranks 2, 3 in the sum of w, step 3");
  // The other ranks needn't wait for a rank that has failed.
  EXPECT_EQ(ErrorText(ErrorCode::kIo, [&] { ranks[3]->Exchange({{To(0, sent)}}, {}, nullptr); }),
            "rank 0 has failed: " + error + "; rank 3 waits for it");
  EXPECT_EQ(ErrorText(ErrorCode::kIo, [&] { ranks[0]->Check(); }), "rank 0 has failed: " + error);
}

// Also where the library's clocks couldn't say when it ends.
TEST(ThreadsCommunicator, MayHaveNoTimeLimit) {
  for (const double limit : {std::numeric_limits<double>::infinity(), 1e300}) {
    const auto errors = RunOnThreadRanks(2, {.time_limit = limit}, [](Communicator* own) {
      // Late, so that the other one waits.
      if (own->world().rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      SendOne(own, 1, 0, 5, 5);
    });
    EXPECT_THAT(errors, Each(""));
  }
}

TEST(ThreadsCommunicator, ThrowsIfAnAwaitedRankHasEnded) {
  const auto errors = RunOnThreadRanks(3, {.seed = 1}, [](Communicator* own) {
    if (own->world().rank == 2) return;
    SendOne(own, 0, 1, 5, 5);  // without rank 2
    own->Check();
    SendOne(own, 2, 1, 5, 5);
    own->Check();
  });
  EXPECT_THAT(errors, ElementsAre("", "rank 2 has ended; rank 1 waits for it", ""));
}

TEST(ThreadsCommunicator, AbortEndsThePresentAndFutureCallsOfAllRanks) {
  ::testing::internal::CaptureStderr();
  const auto errors = RunOnThreadRanks(4, {}, [](Communicator* own) {
    const int32_t rank = own->world().rank;
    if (rank == 0) own->Abort("the disk is full");
    // The first waits, also for a rank that hasn't aborted. The second may come later.
    if (rank == 1) SendOne(own, 2, 1, 5, 5);
    if (rank == 2) SendOne(own, 0, 2, 5, 5);
    if (rank == 3) {
      while (true) own->Check();
    }
    own->Check();
  });
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "rank 0: the disk is full\n");
  EXPECT_THAT(errors, Each("rank 0 has aborted: the disk is full"));
}

TEST(ThreadsCommunicator, TakesBackMessagesOfAFailedCall) {
  const auto ranks = MakeThreadRanks(2, {.time_limit = 0.01});
  {
    const std::vector<uint8_t> dies(100);
    ErrorText([&] { ranks[0]->Exchange({{To(1, dies)}}, {}, nullptr); });
  }
  std::vector<uint8_t> in(100);
  EXPECT_THAT(ErrorText([&] { ranks[1]->Exchange({}, {{From(0, &in)}}, nullptr); }),
              HasSubstr("rank 0 has failed"));
}

TEST(ThreadsCommunicator, RefusesMessagesThatACallCantHave) {
  const auto ranks = MakeThreadRanks(2);
  Communicator* const own = ranks[0].get();
  std::vector<uint8_t> a(3), b(4);
  const auto text = [&](std::vector<OutMessage> out, std::vector<InMessage> in) {
    return InvalidArgumentText([&] { own->Exchange(out, in, nullptr); });
  };
  EXPECT_EQ(text({To(2, a)}, {}), "message to rank 2, expected a rank from 0 to 1");
  EXPECT_EQ(text({}, {From(-1, &a)}), "message from rank -1, expected a rank from 0 to 1");
  EXPECT_EQ(text({To(1, a), To(1, b)}, {}),
            "two messages to rank 1 in one call, expected at most one");
  EXPECT_EQ(text({}, {{.from = 1, .data = nullptr, .bytes = -4}}),
            "message from rank 1 of -4 bytes, expected at least 0");
  EXPECT_EQ(text({To(0, a)}, {}), "rank 0 sends a message of its own, but doesn't expect it");
  EXPECT_EQ(text({}, {From(0, &a)}), "rank 0 expects a message of its own, but doesn't send it");
  EXPECT_EQ(text({To(0, a)}, {From(0, &b)}), "rank 0 sends 3 bytes to rank 0, which expects 4");
  own->Check();  // These are no failures of the rank.
}

TEST(ThreadsCommunicator, RefusesSumsThatTheCpuDoesntHave) {
  const auto ranks = MakeThreadRanks(1);
  int32_t number = 1;
  EXPECT_EQ(ErrorText(ErrorCode::kUnimplemented,
                      [&] { ranks[0]->Sum(&number, 1, DType::kInt32, nullptr); }),
            "sum of int32 on the CPU, expected float32 or float64");
  EXPECT_EQ(InvalidArgumentText([&] { ranks[0]->Sum(&number, -1, DType::kFloat32, nullptr); }),
            "sum of -1 numbers, expected at least 0");
}

TEST(ThreadsCommunicator, RefusesBadOptions) {
  EXPECT_EQ(InvalidArgumentText([] { MakeThreadRanks(0); }), "0 ranks, expected at least 1");
  EXPECT_EQ(InvalidArgumentText([] { MakeThreadRanks(1, {.time_limit = 0}); }),
            "time limit of 0 s, expected more than 0");
}

}  // namespace
}  // namespace skiff
