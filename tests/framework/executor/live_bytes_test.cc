// What an executor, its programs and its plans have taken comes back when they are gone, whatever
// has happened meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/data.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/momentum.h"
#include "framework/builder/program_guard.h"
#include "memory/allocator.h"
#include "memory/places.h"
#include "tests/harness/all_cases.h"
#include "tests/harness/memory_check.h"
#include "tests/harness/random_workload.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

using harness::MemoryChoice;
using harness::Workload;

// Of the process-wide allocator; nothing else of the process allocates during a test.
struct Live {
  int64_t bytes = 0;
  int64_t blocks = 0;

  friend bool operator==(const Live&, const Live&) = default;
  friend std::ostream& operator<<(std::ostream& stream, const Live& live) {
    return stream << live.bytes << " bytes in " << live.blocks << " blocks";
  }
};

Live LiveNow() {
  const AllocatorStatistics statistics = AllocatorOf(Place::Cpu()).statistics();
  return {statistics.live_bytes, statistics.live_blocks};
}

std::vector<MemoryChoice> ChoicesFor(const Workload& workload) {
  std::vector<MemoryChoice> choices = harness::MemoryChoices();
  choices.push_back(harness::NoReuse());
  choices.push_back(SkippingChoice(workload));
  choices.push_back(*BudgetChoice(workload, 1));
  if (auto checkpoints = CheckpointChoice(workload, 1)) choices.push_back(*std::move(checkpoints));
  return choices;
}

TEST(LiveBytes, AreThoseFromBeforeHoweverMemoryWasPlanned) {
  int64_t most_taken = 0;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const Workload workload = RandomWorkload(DefaultOpRegistry(), harness::AllCases(), seed);
    const Live before = LiveNow();
    for (const MemoryChoice& choice : ChoicesFor(workload)) {
      {
        harness::WorkloadRunner runner(workload, choice.options);
        for (size_t i = 0; i < workload.runs.size(); ++i) runner.Next();
        most_taken = std::max(most_taken, LiveNow().bytes - before.bytes);
      }
      EXPECT_EQ(LiveNow(), before) << workload.name << ", memory " << choice.name;
    }
  }
  EXPECT_GT(most_taken, 10000);
}

// A classifier of ten classes. Labels are checked after the first update of running statistics.
class LiveBytesAfterErrors : public ::testing::TestWithParam<MemoryChoice> {
 protected:
  LiveBytesAfterErrors() {
    const ProgramGuard guard(&main_, &startup_);
    const Variable image = layers::Data("image", {-1, 3, 8, 8});
    const Variable label = layers::Data("label", {-1, 1}, DType::kInt64);
    const Variable conv = layers::Conv2d(image, {.filters = 4, .kernel = 3});
    Variable x = layers::BatchNorm(conv, {.act = "relu"});
    x = layers::Conv2d(x, {.filters = 4, .kernel = 3});
    const Variable logits =
        layers::Fc(layers::BatchNorm(x, {.act = "relu"}), 10, {.num_flatten_dims = 1});
    const Variable loss = layers::Mean(layers::SoftmaxWithCrossEntropy(logits, label));
    optimizer::Momentum({.learning_rate = 0.1}).Minimize(loss);
    loss_ = loss.name();
    conv_ = conv.name();
  }
  ~LiveBytesAfterErrors() override { AllocatorOf(Place::Cpu()).SetLimit(0); }

  static FeedList Batch(int64_t rows, int64_t last_label = 0) {
    FeedList feeds = {{"image", Tensor({rows, 3, 8, 8}, DType::kFloat32)},
                      {"label", Tensor({rows, 1}, DType::kInt64)}};
    for (float& value : feeds[0].second.values<float>()) value = 1;
    for (int64_t& value : feeds[1].second.values<int64_t>()) value = 1;
    feeds[1].second.values<int64_t>().back() = last_label;
    return feeds;
  }

  Program main_, startup_;
  std::string loss_;
  std::string conv_;
};

TEST_P(LiveBytesAfterErrors, OfDataAreThoseFromBeforeTheRun) {
  const Live before = LiveNow();
  {
    Executor executor(Place::Cpu());
    executor.Run(startup_);
    CompiledProgram compiled = executor.Compile(main_, GetParam().options);
    const FeedList good = Batch(4);
    const FeedList bad = Batch(4, 10);
    compiled.Run(good, {loss_});
    const Live between = LiveNow();
    for (int repeat = 0; repeat < 3; ++repeat) {
      EXPECT_EQ(ErrorOf([&] { compiled.Run(bad, {loss_}); }).code(), ErrorCode::kOutOfRange);
      EXPECT_EQ(LiveNow(), between);
    }
    {
      BoundProgram bound = compiled.Bind(bad, {loss_});
      EXPECT_THROW(bound.Step(), Error);
    }
    EXPECT_EQ(LiveNow(), between);
    // A plan that has done nothing but fail is kept, too, but not longer than the program.
    EXPECT_THROW(compiled.Run(Batch(5, 10), {loss_}), Error);
  }
  EXPECT_EQ(LiveNow(), before);
}

// Whichever allocation it is that finds no memory: of the arena, of a fetch that takes some pages.
TEST_P(LiveBytesAfterErrors, OfMemoryAreThoseFromBeforeTheRun) {
  constexpr int64_t kPage = 4096;
  Allocator& allocator = AllocatorOf(Place::Cpu());
  const Live before = LiveNow();
  {
    Executor executor(Place::Cpu());
    executor.Run(startup_);
    CompiledProgram compiled = executor.Compile(main_, GetParam().options);
    const FeedList feeds = Batch(16);
    const Live between = LiveNow();
    int64_t failures = 0;
    for (bool has_run = false; !has_run; ++failures) {
      allocator.SetLimit(0);
      allocator.ReleaseCached();
      allocator.SetLimit(allocator.statistics().reserved_bytes + failures * kPage + 1);
      try {
        compiled.Run(feeds, {loss_, conv_});
        has_run = true;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted) << error.what();
        EXPECT_EQ(LiveNow(), between);
      }
    }
    EXPECT_GT(failures, 10);
  }
  EXPECT_EQ(LiveNow(), before);
}

INSTANTIATE_TEST_SUITE_P(Choices, LiveBytesAfterErrors,
                         ::testing::ValuesIn(harness::MemoryChoices()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace skiff
