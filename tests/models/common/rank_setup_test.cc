#include "models/common/rank_setup.h"

#include <gflags/gflags.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "framework/comm/rank_resources.h"
#include "framework/training/array_reader.h"
#include "models/common/rank_flags.h"
#include "tests/harness/error_text.h"
#include "tests/harness/thread_count.h"
#include "tests/harness/thread_ranks.h"

namespace skiff::models {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<training::Reader> Numbers() {
  const Tensor numbers = Tensor::FromValues<int64_t>({5}, {0, 1, 2, 3, 4});
  return std::make_unique<training::ArrayReader>(FeedList{{"number", numbers}},
                                                 training::SampleReaderOptions{.batch_size = 1});
}

std::vector<int64_t> Read(training::Reader* reader) {
  std::vector<int64_t> numbers;
  for (training::Batch batch; reader->Next(&batch);) {
    numbers.push_back(batch.feed("number").Item<int64_t>());
  }
  return numbers;
}

TEST(RankSetup, SharesTheBatches) {
  const World world{.rank = 1, .size = 2};
  EXPECT_THAT(Read(TrainingShare(Numbers(), world).get()), ElementsAre(1, 3, 0));
  EXPECT_THAT(Read(EvaluationShare(Numbers(), world).get()), ElementsAre(1, 3));
  EXPECT_EQ(TrainingShare(Numbers(), world)->ranks(), 2);
  EXPECT_THAT(Read(TrainingShare(Numbers(), World()).get()), ElementsAre(0, 1, 2, 3, 4));
}

TEST(RankSetup, DividesTheBatchOfAnUpdate) {
  EXPECT_EQ(MergedSteps(64, 16, 4), 1);
  EXPECT_EQ(MergedSteps(128, 16, 4), 2);
  EXPECT_EQ(MergedSteps(48, 16, 1), 3);
  EXPECT_EQ(InvalidArgumentText([] { MergedSteps(100, 16, 4); }),
            "global_batch = 100: expected a multiple of 64, 4 ranks with a batch_size of 16");
  EXPECT_EQ(InvalidArgumentText([] { MergedSteps(24, 16, 1); }),
            "global_batch = 24: expected a multiple of 16, 1 rank with a batch_size of 16");
  EXPECT_EQ(InvalidArgumentText([] { MergedSteps(64, 0, 1); }),
            "batch_size = 0: expected at least 1");
}

TEST(RankSetup, TellsHowTheBatchIsShared) {
  std::vector<std::string> texts(3);
  const auto errors = RunOnThreadRanks(3, {}, [&](Communicator* own) {
    const auto rank = static_cast<size_t>(own->world().rank);
    texts[rank] = TextOfRanks(own, 1, 16) + "; " + TextOfRanks(own, 2, 16);
  });
  EXPECT_THAT(errors, Each(""));
  EXPECT_THAT(texts, Each("3 ranks on 1 host, batches of 48 = 3 x 16; "
                          "3 ranks on 1 host, batches of 96 = 3 x 2 x 16"));
  EXPECT_EQ(TextOfRanks(nullptr, 2, 16), "");
}

// Of a process that no launcher has started.
int RunAlone(int status) {
  return RunAsRank([&](const std::shared_ptr<Communicator>& ranks) {
    EXPECT_EQ(ranks, nullptr);
    return status;
  });
}

TEST(RankFlags, RunAProgramWhoseFlagsAreRight) {
  EXPECT_EQ(RunAlone(3), 3);
  for (const auto& [flag, value, text] : {std::tuple{"bucket_bytes", "-1", "bucket_bytes = -1: "},
                                          {"collective_timeout", "nan", "collective_timeout = nan"},
                                          {"reduction", "tree", "reduction \"tree\": "},
                                          {"overlap", "maybe", "\"maybe\""}}) {
    const gflags::FlagSaver saver;
    gflags::SetCommandLineOption(flag, value);
    EXPECT_THAT(InvalidArgumentText([] { RunAlone(0); }), HasSubstr(text));
  }
}

TEST(RankFlags, ChooseTheOrderOfSumsByThePlace) {
  const gflags::FlagSaver saver;
  const auto order = [](Place place) { return DataParallelFromFlags(nullptr, place).order; };
  EXPECT_EQ(order(Place::Cpu()), SumOrder::kRanks);
  EXPECT_EQ(order(Place::Cuda(0)), SumOrder::kFast);
  gflags::SetCommandLineOption("reduction", "fast");
  EXPECT_EQ(order(Place::Cpu()), SumOrder::kFast);
  gflags::SetCommandLineOption("reduction", "ranks");
  EXPECT_EQ(order(Place::Cuda(0)), SumOrder::kRanks);
}

TEST(RankFlags, SetThreadsThatAreSaidOrThoseOfTheRank) {
  const harness::ThreadCount before(2);
  SetThreads(3, nullptr);
  EXPECT_EQ(omp_get_max_threads(), 3);
  SetThreads(0, nullptr);
  EXPECT_EQ(omp_get_max_threads(), ThreadsOfRank(nullptr));
}

}  // namespace
}  // namespace skiff::models
