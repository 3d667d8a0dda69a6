// Steady state on ragged batches: after two batches of each capacity, 1,000 LoDs that it has never
// seen make no plan, prepare no kernel and allocate nothing of ours. All news are counted, those
// inside oneDNN's library apart.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "framework/executor/executor.h"
#include "framework/training/bound_feeds.h"
#include "memory/places.h"
#include "models/text_classifier/text_classifier.h"
#include "tests/harness/allocation_count.h"
#include "tests/harness/ragged_feeds.h"

namespace skiff::models {
namespace {

constexpr int64_t kWords = 50;

// Batches of 9 to 16 texts and 97 to 192 words, which are one capacity for texts and four for
// words, with LoDs that aren't in `seen`, which they are added to. `longest`: with as many words as
// each capacity has, in its order.
std::vector<FeedList> Batches(int count, bool longest, std::set<LoD>* seen) {
  constexpr int64_t kCapacities[] = {112, 128, 160, 192};
  std::mt19937_64 random(5);
  std::vector<FeedList> batches;
  while (static_cast<int>(batches.size()) < count) {
    const int64_t texts = 9 + static_cast<int64_t>(random() % 8);
    const int64_t words = longest ? kCapacities[batches.size() % std::size(kCapacities)]
                                  : 97 + static_cast<int64_t>(random() % 96);
    const Tensor ids =
        harness::RaggedIds({harness::RandomLengths(words, texts, &random)}, kWords, &random);
    if (!seen->insert(ids.lod()).second) continue;
    const Tensor label = harness::RandomIds({texts, 1}, 2, &random);
    batches.push_back({{"ids", ids}, {"label", label}});
  }
  return batches;
}

class RaggedSteps : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(, RaggedSteps, ::testing::Values("cnn", "gru", "lstm"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(RaggedSteps, AllocateNothing) {
  const training::TrainingProgram program = BuildTextClassifier(
      {.network = GetParam(), .vocabulary = kWords, .classes = 2, .embedding = 24, .hidden = 20},
      {}, 1);
  Executor executor;
  executor.Run(*program.startup);
  training::BoundFeeds training(executor.Compile(*program.main), {program.loss});
  std::set<LoD> seen;
  // They live to the end, since the steps below would count what freeing their memory takes.
  const std::vector<FeedList> first = Batches(4, /*longest=*/true, &seen);
  for (const FeedList& batch : first) training.Step(batch);
  // Until it is bound again, a plan keeps copies of feeds that a larger plan has outgrown.
  for (const FeedList& batch : first) training.Step(batch);
  const PreparationStatistics prepared = training.preparation();
  EXPECT_EQ(prepared.plans, 4);
  const std::vector<FeedList> batches = Batches(1000, /*longest=*/false, &seen);

  const harness::AllocationCount before = harness::CountAllocations();
  const int64_t buffers_before = AllocatorOf(Place::Cpu()).statistics().allocations;
  double sum = 0;
  for (const FeedList& batch : batches) sum += training.Step(batch).fetch(0).Item<float>();
  EXPECT_EQ(harness::CountAllocations().own - before.own, 0);
  EXPECT_EQ(AllocatorOf(Place::Cpu()).statistics().allocations, buffers_before);
  EXPECT_EQ(training.preparation().plans, prepared.plans);
  EXPECT_EQ(training.preparation().kernels, prepared.kernels);
  // Not one kernel is prepared again for other rows.
  EXPECT_EQ(training.preparation().kernel_seconds, 0);
  EXPECT_GT(sum, 0);
}

}  // namespace
}  // namespace skiff::models
