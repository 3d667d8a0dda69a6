#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/momentum.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/ir/text.h"
#include "framework/transpiler/sync_batch_norm_pass.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/error_text.h"
#include "tests/harness/sgd_training.h"
#include "tests/harness/thread_count.h"
#include "tests/harness/thread_ranks.h"

namespace skiff {
namespace {

using harness::SameBits;
using harness::SmallNumbers;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Ranks may run the block another number of times, and then wait for each other forever.
TEST(SyncBatchNormPass, RefusesABatchNormInABlockOfAnotherOp) {
  const auto program = ParseProgramText(R"(program {
    block 0 {
      param w float32 [2] persistable
      var w@GRAD float32 [2]
      var rate float32 [1] persistable
      var x float32 [-1, 2]
      var mean float32 [2] persistable
      var variance float32 [2] persistable
      var y float32 [-1, 2]
      var more bool [1]
      var scopes step_scopes float32 []
      {Out: [y], StepScopes: [scopes]} = while(X: [x, mean, variance], Condition: [more]) {sub_block = block 1}
      {ParamOut: [w]} = sgd(Param: [w], Grad: [w@GRAD], LearningRate: [rate]) {op_role = 2}
    }
    block 1 parent=0 {
      {Y: [y], MeanOut: [mean], VarianceOut: [variance]} = batch_norm(X: [x], Mean: [mean], Variance: [variance])
    }
  })");
  EXPECT_THAT(ErrorText(ErrorCode::kUnimplemented,
                        [&] { SyncBatchNormPass().Apply({DefaultOpRegistry()}, program.get()); }),
              AllOf(HasSubstr("batch_norm (block 1, op #0)"),
                    HasSubstr("expected batch norms in block 0")));
}

// An update that a branch makes is an update, too.
TEST(SyncBatchNormPass, ReplacesBatchNormsBesideUpdatesInABlockOfAnotherOp) {
  const auto program = ParseProgramText(R"(program {
    block 0 {
      param w float32 [2] persistable
      var w@GRAD float32 [2]
      var rate float32 [1] persistable
      var x float32 [-1, 2]
      var mean float32 [2] persistable
      var variance float32 [2] persistable
      var y float32 [-1, 2]
      var more bool [1]
      var scopes step_scopes float32 []
      {Y: [y], MeanOut: [mean], VarianceOut: [variance]} = batch_norm(X: [x], Mean: [mean], Variance: [variance])
      {Scope: [scopes]} = conditional_block(Cond: [more], Input: [w, w@GRAD, rate]) {sub_block = block 1}
    }
    block 1 parent=0 {
      {ParamOut: [w]} = sgd(Param: [w], Grad: [w@GRAD], LearningRate: [rate]) {op_role = 2}
    }
  })");
  EXPECT_EQ(SyncBatchNormPass().Apply({DefaultOpRegistry()}, program.get()).changes, 1);
}

// ---- what a network learns

Variable Normalized(const Variable& x, int64_t filters, int64_t kernel) {
  return layers::BatchNorm(layers::Conv2d(
      x, {.filters = filters, .kernel = kernel, .padding = kernel / 2, .bias_attr = false}));
}

// The loss of a network of two residual blocks, the second of which projects.
Variable SmallResNet() {
  const Variable image = layers::Data("image", {-1, 3, -1, -1});
  const Variable label = layers::Data("label", {-1, 2});
  Variable x = layers::Relu(Normalized(image, 4, 3));
  x = layers::Relu(Normalized(layers::Relu(Normalized(x, 4, 3)), 4, 3) + x);
  x = layers::Relu(Normalized(x, 8, 3) + Normalized(x, 8, 1));
  const Variable pooled = layers::Pool2d(x, {.type = "avg", .global = true});
  return layers::Mean(
      layers::SquareErrorCost(layers::Fc(pooled, 2, {.num_flatten_dims = 1}), label));
}

struct Trained {
  std::vector<double> losses;
  std::map<std::string, Tensor> persistables;
};

constexpr int kSteps = 3;

// Trains with the feeds that feeds(step) returns.
Trained TrainOn(const std::function<FeedList(int)>& feeds, int steps,
                const CompileOptions& options) {
  const harness::ThreadCount one_thread(1);
  Program main, startup;
  main.seed = startup.seed = 7;
  Variable loss;
  {
    const ProgramGuard guard(&main, &startup);
    loss = SmallResNet();
    optimizer::Momentum({.learning_rate = 0.1f}).Minimize(loss);
  }
  Executor executor(Place::Cpu());
  executor.Run(startup);
  CompiledProgram step = executor.Compile(main, options);
  Trained trained;
  for (int i = 0; i < steps; ++i) {
    trained.losses.push_back(step.Run(feeds(i), {loss})[0].Item<float>());
  }
  for (const std::string& name : executor.scope().Names()) {
    trained.persistables[name] = executor.scope().Get(name);
  }
  return trained;
}

// Trains on images [begin, end) of each step's batch.
Trained Train(int64_t begin, int64_t end, int64_t all, const CompileOptions& options) {
  const auto rows = [&](const Tensor& batch) {
    const int64_t row = batch.element_count() / all;
    const float* data = batch.data<float>();
    std::vector<int64_t> dims(batch.shape().begin(), batch.shape().end());
    dims[0] = end - begin;
    return Tensor::FromValues<float>(Shape(dims), {data + begin * row, data + end * row});
  };
  const auto feeds = [&](int i) -> FeedList {
    return {{"image", rows(SmallNumbers({all, 3, 6, 6}, 2 * i))},
            {"label", rows(SmallNumbers({all, 2}, 2 * i + 1))}};
  };
  return TrainOn(feeds, kSteps, options);
}

// Trains on two images of another size in each step.
Trained TrainOnSizes(const std::vector<int64_t>& sizes, const DataParallelOptions& options) {
  const auto feeds = [&](int i) -> FeedList {
    const int64_t size = sizes[static_cast<size_t>(i)];
    return {{"image", SmallNumbers({2, 3, size, size}, 2 * i)},
            {"label", SmallNumbers({2, 2}, 2 * i + 1)}};
  };
  return TrainOn(feeds, static_cast<int>(sizes.size()), {.data_parallel = options});
}

// Each of the ranks trains on `images` images of the batch.
std::vector<Trained> TrainOnRanks(int32_t ranks, int64_t images,
                                  const DataParallelOptions& options) {
  std::vector<Trained> trained(static_cast<size_t>(ranks));
  const auto train = [&](Communicator* own) {
    const auto rank = static_cast<size_t>(own->world().rank);
    DataParallelOptions of_rank = options;
    of_rank.communicator = std::shared_ptr<Communicator>(std::shared_ptr<void>(), own);
    const auto begin = static_cast<int64_t>(rank) * images;
    trained[rank] = Train(begin, begin + images, ranks * images, {.data_parallel = of_rank});
  };
  EXPECT_THAT(RunOnThreadRanks(ranks, {.time_limit = 60, .seed = 3}, train), Each(IsEmpty()));
  return trained;
}

double LargestDifference(const Tensor& a, const Tensor& b) {
  double largest = 0;
  for (int64_t i = 0; i < a.element_count(); ++i) {
    largest = std::max<double>(largest, std::abs(a.data<float>()[i] - b.data<float>()[i]));
  }
  return largest;
}

// Ranks with equal batches learn what one process learns that has their batches in one.
void ExpectSameAsOne(int32_t ranks, const DataParallelOptions& options) {
  SCOPED_TRACE(StrCat(ranks, " ranks"));
  constexpr int64_t kImages = 2;
  const std::vector<Trained> trained = TrainOnRanks(ranks, kImages, options);
  const Trained one = Train(0, ranks * kImages, ranks * kImages, {});
  for (size_t i = 0; i < one.losses.size(); ++i) {
    double sum = 0;
    for (const Trained& of_rank : trained) sum += of_rank.losses[i];
    EXPECT_NEAR(sum / ranks, one.losses[i], 1e-5) << "loss of step " << i;
  }
  for (const auto& [name, expected] : one.persistables) {
    for (const Trained& of_rank : trained) {
      const Tensor& found = of_rank.persistables.at(name);
      EXPECT_TRUE(SameBits(found, trained[0].persistables.at(name))) << name;
      if (expected.dtype() != DType::kFloat32) continue;
      EXPECT_LT(LargestDifference(found, expected), 2e-5) << name;
    }
  }
}

TEST(SyncBatchNormPass, RanksLearnWhatOneProcessLearnsOfTheirBatchesInOne) {
  for (const int32_t ranks : {2, 3}) ExpectSameAsOne(ranks, {.sync_batch_norm = true});
}

TEST(SyncBatchNormPass, WorksBesideSumsOfGradientsInAnotherThread) {
  ExpectSameAsOne(2, {.bucket_bytes = 1024, .overlap = Overlap::kOn, .sync_batch_norm = true});
}

// The network pools whole images, so it takes them of any size. The ranks have other sizes in the
// same step, and make the plan for a size in other steps.
TEST(SyncBatchNormPass, RanksMayHaveImagesOfOtherSizes) {
  std::vector<Trained> trained(2);
  const auto train = [&](Communicator* own) {
    const auto rank = static_cast<size_t>(own->world().rank);
    const std::shared_ptr<Communicator> shared(std::shared_ptr<void>(), own);
    const std::vector<int64_t> sizes =
        rank == 0 ? std::vector<int64_t>{6, 4, 4, 6} : std::vector<int64_t>{4, 4, 6, 6};
    trained[rank] = TrainOnSizes(sizes, {.communicator = shared, .sync_batch_norm = true});
  };
  EXPECT_THAT(RunOnThreadRanks(2, {.time_limit = 60, .seed = 3}, train), Each(IsEmpty()));
  for (const auto& [name, found] : trained[0].persistables) {
    EXPECT_TRUE(SameBits(found, trained[1].persistables.at(name))) << name;
  }
}

// The statistics of two images are far from those of four.
TEST(SyncBatchNormPass, WithoutItEachRankHasStatisticsOfItsOwn) {
  const std::vector<Trained> trained = TrainOnRanks(2, 2, {});
  const Trained one = Train(0, 4, 4, {});
  EXPECT_GT(std::abs((trained[0].losses[2] + trained[1].losses[2]) / 2 - one.losses[2]), 1e-3);
}

}  // namespace
}  // namespace skiff
