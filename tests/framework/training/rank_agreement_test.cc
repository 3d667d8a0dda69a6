#include "framework/training/rank_agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/harness/thread_ranks.h"

namespace skiff::training {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Returns by rank what the work says in an AgreedError; "" if it returns.
std::vector<std::string> AgreedErrors(int32_t size,
                                      const std::function<void(Communicator*)>& work) {
  std::vector<std::string> agreed(static_cast<size_t>(size));
  const auto errors = RunOnThreadRanks(size, {.seed = 2}, [&](Communicator* own) {
    try {
      work(own);
    } catch (const AgreedError& error) {
      agreed[static_cast<size_t>(own->world().rank)] = error.what();
    }
  });
  EXPECT_THAT(errors, Each(""));
  return agreed;
}

// Of four ranks, rank 2 has other facts than the others.
std::vector<std::string> Compared(const RankFacts& facts, const RankFacts& of_rank_2) {
  return AgreedErrors(4, [&](Communicator* own) {
    CheckEqualOnRanks(own, own->world().rank == 2 ? of_rank_2 : facts);
  });
}

TEST(CheckEqualOnRanks, NamesTheFirstFactThatDiffers) {
  const RankFacts facts = {{"epochs", "5"}, {"batch_size", "64"}, {"keep", ""}};
  EXPECT_THAT(Compared(facts, facts), Each(""));
  EXPECT_THAT(Compared(facts, {{"epochs", "5"}, {"batch_size", "32"}, {"keep", "x"}}),
              Each("rank 2: batch_size is 32, rank 0: 64"));
  EXPECT_THAT(Compared(facts, {{"epochs", "5"}, {"batch_size", "64"}, {"keep", "x"}}),
              Each("rank 2: keep is x, rank 0: \"\""));
  EXPECT_THAT(Compared(facts, {{"epochs", "5"}, {"batch_size", "64"}}),
              Each("rank 2: keep is not there, rank 0: \"\""));
  EXPECT_THAT(Compared({}, {{"epochs", ""}}), Each("rank 2: epochs is \"\", rank 0: not there"));
}

TEST(CheckEqualOnRanks, NamesTheLineOfALongValue) {
  const RankFacts facts = {{"the program", "a\nb\nc\n"}};
  EXPECT_THAT(Compared(facts, {{"the program", "a\nx\nc\n"}}),
              Each("rank 2: line 2 of the program is \"x\", rank 0: \"b\""));
  EXPECT_THAT(Compared(facts, {{"the program", "a\nb\n"}}),
              Each("rank 2: line 3 of the program is missing, rank 0: \"c\""));
}

TEST(DoOnRanks, EndsAllIfOneRankHasAnError) {
  std::vector<int> done(3);
  const auto errors = AgreedErrors(3, [&](Communicator* own) {
    const int32_t rank = own->world().rank;
    DoOnRanks(own, [&] {
      ++done[static_cast<size_t>(rank)];
      if (rank > 0) Throw(ErrorCode::kDataLoss, "a file of ", rank);
    });
  });
  EXPECT_THAT(errors, Each("rank 1: a file of 1"));
  EXPECT_THAT(done, Each(1));
  const auto equal = AgreedErrors(3, [&](Communicator* own) {
    DoOnRanks(own, [&] { Throw(ErrorCode::kNotFound, "no file"); });
  });
  EXPECT_THAT(equal, Each("no file"));
  EXPECT_THAT(AgreedErrors(3, [](Communicator* own) { DoOnRanks(own, [] {}); }), Each(""));
}

// A process without ranks.
TEST(RankAgreement, IsNothingForOneRank) {
  CheckEqualOnRanks(nullptr, {{"a", "b"}});
  EXPECT_THROW(DoOnRanks(nullptr, [] { Throw(ErrorCode::kIo, "x"); }), Error);
  AbortRanks(nullptr, "nobody");
}

// The rank that fails says so; those that fail because of it don't.
TEST(AbortRanks, IsForTheRankThatFailsFirst) {
  ::testing::internal::CaptureStderr();
  const auto errors = RunOnThreadRanks(3, {}, [](Communicator* own) {
    try {
      if (own->world().rank == 1) Throw(ErrorCode::kIo, "a torn file");
      CheckEqualOnRanks(own, {});
    } catch (const Error& error) {
      AbortRanks(own, error.what());
      throw;
    }
  });
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "rank 1: a torn file\n");
  EXPECT_EQ(errors[1], "a torn file");
  EXPECT_THAT(errors[0], HasSubstr("rank 1"));
  EXPECT_THAT(errors[2], HasSubstr("rank 1"));
}

}  // namespace
}  // namespace skiff::training
