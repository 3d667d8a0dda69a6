// Steady state on ragged batches: 1,000 different LoDs that round up to a few capacities make no
// plan, prepare no kernel and allocate nothing of ours. All news are counted, those inside oneDNN's
// library apart.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "framework/executor/executor.h"
#include "framework/training/bound_feeds.h"
#include "memory/allocator.h"
#include "models/text_classifier/text_classifier.h"
#include "tests/harness/allocation_count.h"

namespace skiff::models {
namespace {

constexpr int64_t kWords = 50;

// 9 to 16 texts, 97 to 192 words: two capacities for texts and words.
std::vector<FeedList> Batches(int count) {
  std::mt19937_64 random(5);
  std::vector<FeedList> batches;
  std::set<LoD> seen;
  while (static_cast<int>(batches.size()) < count) {
    std::vector<int64_t> lengths(9 + random() % 8, 1);
    int64_t words = 97 + static_cast<int64_t>(random() % 96);
    for (int64_t rest = words - std::ssize(lengths); rest > 0; --rest) {
      ++lengths[random() % lengths.size()];
    }
    Tensor ids({words}, DType::kInt64);
    for (int64_t& id : ids.values<int64_t>()) id = static_cast<int64_t>(random() % kWords);
    ids.set_lod({OffsetsOf(lengths)});
    if (!seen.insert(ids.lod()).second) continue;
    Tensor label({std::ssize(lengths), 1}, DType::kInt64);
    for (int64_t& value : label.values<int64_t>()) value = static_cast<int64_t>(random() % 2);
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
  const std::vector<FeedList> batches = Batches(1000);
  // The first ones make the plans; LoDs get their largest sizes on the way.
  for (const FeedList& batch : batches) training.Step(batch);
  const PreparationStatistics prepared = training.preparation();
  EXPECT_LE(prepared.plans, 4);

  const harness::AllocationCount before = harness::CountAllocations();
  const int64_t buffers_before = AllocatorOf(Place::Cpu()).statistics().allocations;
  double sum = 0;
  for (auto batch = batches.rbegin(); batch != batches.rend(); ++batch) {
    sum += training.Step(*batch).fetch(0).Item<float>();
  }
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
