// ResNet-20 trains in little more memory than its plan reports, and fails with an Error in less.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "framework/io/parameters.h"
#include "framework/io/weights_hash.h"
#include "memory/allocator.h"
#include "memory/places.h"
#include "models/common/classifier_program.h"
#include "models/resnet/resnet.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/op_case.h"
#include "tests/harness/temp_directory.h"

namespace skiff::models {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr int64_t kBatch = 16;
constexpr int32_t kClasses = 10;

class ResNetMemoryLimit : public ::testing::Test {
 protected:
  ResNetMemoryLimit()
      : program_(BuildClassifier(
            {.name = "images", .channels = 3, .height = 32, .width = 32, .classes = kClasses},
            [](const Variable& image, int64_t classes) {
              return ResNet(image, {.depth = 20, .classes = classes});
            },
            {.learning_rate = 0.05f,
             .schedule = training::ScheduleKind::kCosine,
             .total_steps = 10},
            3)) {
    allocator_.ReleaseCached();
  }
  ~ResNetMemoryLimit() override { allocator_.SetLimit(0); }

  FeedList Batch(int64_t rows, uint64_t seed) const {
    const Shape images = {rows, 3, 32, 32};
    const harness::Array labels = harness::Integers({rows, 1}, seed, 0, kClasses);
    return {{program_.image, ToTensor(harness::Uniform(images, seed), DType::kFloat32)},
            {program_.label, ToTensor(labels, DType::kInt64)}};
  }

  struct Training {
    std::string weights_hash;  // of everything that a checkpoint would hold
    int64_t needed_bytes = 0;  // the sum of the plan's statistics
    int64_t arena_bytes = 0;
  };

  // Does three steps with an executor of its own.
  Training Train(int64_t rows, Recompute recompute = MemoryOptions().recompute) const {
    Executor executor;
    executor.Run(*program_.startup);
    CompiledProgram compiled =
        executor.Compile(*program_.main, {.memory = {.recompute = recompute}});
    FeedList feeds = Batch(rows, 1);
    BoundProgram bound = compiled.Bind(feeds, {program_.loss});
    for (int step = 0; step < 3; ++step) bound.Step();
    const PlanStatistics plan = bound.statistics();
    int64_t needed = plan.planned_bytes + plan.persistable_bytes + plan.derived_bytes +
                     plan.rollback_bytes + bound.fetch(0).byte_count();
    // The plan reads a copy of whole numbers.
    for (const auto& [name, tensor] : feeds) {
      needed += tensor.byte_count() * (IsFloat(tensor.dtype()) ? 1 : 2);
    }
    needed += executor.scope().Get(kStepCounterName).byte_count();
    return {Hash(executor), needed, plan.planned_bytes};
  }

  std::string Hash(const Executor& executor) const {
    return WeightsHash(executor.scope(), PersistableNames(*program_.main));
  }

  int64_t LiveBytes() const { return allocator_.statistics().live_bytes; }
  // Returns what the process holds after the caches are released.
  int64_t HeldBytes() const {
    allocator_.ReleaseCached();
    return allocator_.statistics().reserved_bytes;
  }

  const ClassifierProgram program_;
  Allocator& allocator_ = AllocatorOf(Place::Cpu());
};

TEST_F(ResNetMemoryLimit, TrainsInTwoPercentMoreThanItsPlanSays) {
  const int64_t live = LiveBytes();
  allocator_.ResetPeaks();
  const Training free = Train(kBatch);
  // Nothing takes memory but what the plan's figures cover.
  EXPECT_LE(allocator_.statistics().peak_bytes - live, free.needed_bytes);
  EXPECT_EQ(LiveBytes(), live);

  allocator_.SetLimit(HeldBytes() + free.needed_bytes + free.needed_bytes / 50);
  EXPECT_EQ(Train(kBatch).weights_hash, free.weights_hash);
  EXPECT_EQ(LiveBytes(), live);
}

TEST_F(ResNetMemoryLimit, InLessSaysWhatTakesItAndGoesOnWithASmallerBatch) {
  const int64_t arena_bytes = Train(kBatch).arena_bytes;
  const bool saves_more = Train(kBatch, Recompute::kCheapOps).arena_bytes < arena_bytes;
  Executor unlimited;
  unlimited.Run(*program_.startup);
  unlimited.Run(*program_.main, Batch(kBatch / 2, 2), {});

  Executor executor;
  executor.Run(*program_.startup);
  CompiledProgram compiled = executor.Compile(*program_.main);
  const FeedList feeds = Batch(kBatch, 1);
  const FeedList fewer = Batch(kBatch / 2, 2);
  const std::string weights_hash = Hash(executor);
  const int64_t live = LiveBytes();
  allocator_.SetLimit(HeldBytes() + arena_bytes - arena_bytes / 50);
  const Error error = ErrorOf([&] { compiled.Run(feeds, {program_.loss}); });
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(error.what(), HasSubstr("bytes asked for (arena)"));
  EXPECT_THAT(error.what(), ContainsRegex("\nmost is live at instruction [0-9]+ \\([a-z0-9_]+\\), "
                                          "[0-9.]+ MiB:\n"));
  EXPECT_THAT(error.what(),
              ContainsRegex("\n  [^\n]+: [0-9.]+ MiB by [a-z0-9_]+ in /stage_[1-3]/block_[1-3]/ "
                            "\\([^\n]*models/resnet/resnet.cc:[0-9]+\\)\n"));
  // Unless the default computes all cheap ops again already.
  const std::string cheap_ops =
      saves_more ? "memory.recompute cheap_ops \\(about [0-9.]+ MiB less\\), " : "";
  EXPECT_THAT(error.what(), ContainsRegex("\nless memory takes: " + cheap_ops +
                                          "memory.recompute least_memory \\(about [0-9.]+ MiB "
                                          "less\\)"));
  EXPECT_EQ(Hash(executor), weights_hash);
  EXPECT_EQ(LiveBytes(), live);

  compiled.Run(fewer, {program_.loss});
  EXPECT_EQ(Hash(executor), Hash(unlimited));
}

}  // namespace
}  // namespace skiff::models
