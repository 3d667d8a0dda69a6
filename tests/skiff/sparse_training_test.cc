// Embeddings whose gradients are selected rows train as those with dense gradients, by every
// optimizer, clipped or not, with the optimizers' passes on and off.
#include "tests/skiff/sparse_training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "framework/plan/plan.h"
#include "skiff/skiff.h"

namespace skiff {
namespace {

using optimizer::Optimizer;
using sparse_training::Batch;
using sparse_training::Loss;
using sparse_training::Spec;
using sparse_training::Specs;

// The table after some steps.
std::vector<float> TrainedTable(const Optimizer& optimizer, bool is_sparse,
                                const CompileOptions& options = {}) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  optimizer.Minimize(Loss(is_sparse));
  Executor executor(Place::Cpu());
  executor.Run(startup);
  CompiledProgram step = executor.Compile(main, options);
  for (int64_t i = 0; i < 4; ++i) step.Run(Batch(i), {});
  return executor.scope().Get("table").ToVector<float>();
}

class SparseTraining : public ::testing::TestWithParam<Spec> {};

TEST_P(SparseTraining, IsAsWithDenseGradients) {
  const std::vector<float> dense = TrainedTable(*GetParam().make(), false);
  const std::vector<float> sparse = TrainedTable(*GetParam().make(), true);
  ASSERT_EQ(sparse.size(), dense.size());
  for (size_t i = 0; i < dense.size(); ++i) {
    EXPECT_NEAR(sparse[i], dense[i], 2e-6f) << "row " << i / 5;
  }
}

TEST_P(SparseTraining, PassesChangeNoBit) {
  EXPECT_EQ(TrainedTable(*GetParam().make(), true,
                         {.passes = {.also = {"fuse_optimizer", "flatten_parameters"}}}),
            TrainedTable(*GetParam().make(), true));
}

INSTANTIATE_TEST_SUITE_P(Optimizers, SparseTraining, ::testing::ValuesIn(Specs()),
                         [](const auto& info) { return info.param.name; });

TEST(ClipOfSparseGradients, HasOneNormWhenFused) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  optimizer::Sgd({.clip = ClipByGlobalNorm(0.1f)}).Minimize(Loss(true));
  Executor executor(Place::Cpu());
  executor.Run(startup);
  CompiledProgram step = executor.Compile(main, {.passes = {.also = {"fuse_optimizer"}}});
  const BoundProgram bound = step.Bind(Batch(0), {});
  std::map<std::string, int> counts;
  for (const Instruction& instruction : bound.plan().instructions) ++counts[instruction.Name()];
  EXPECT_EQ(counts["squared_global_norm"], 1);
  EXPECT_EQ(counts["squared_l2_norm"], 0);
}

// Rows that no batch has looked up; of words 1 to 3 and so on there is one in each.
TEST(LazyMode, LeavesRowsAloneThatAreNotThere) {
  const std::vector<float> start = TrainedTable(optimizer::Sgd({.learning_rate = 0.0}), true);
  const auto moved = [&](const std::vector<float>& table, size_t row) {
    return !std::equal(table.begin() + static_cast<ptrdiff_t>(row * 5),
                       table.begin() + static_cast<ptrdiff_t>(row * 5 + 5),
                       start.begin() + static_cast<ptrdiff_t>(row * 5));
  };
  // Decay moves every row, were it not lazy.
  const auto lazy =
      TrainedTable(optimizer::AdamW({.learning_rate = 0.01, .lazy_mode = true}), true);
  const auto all = TrainedTable(optimizer::AdamW({.learning_rate = 0.01}), true);
  for (const size_t row : {0, 2, 7, 19}) EXPECT_TRUE(moved(lazy, row)) << row;
  for (const size_t row : {8, 11, 22}) {
    EXPECT_FALSE(moved(lazy, row)) << row;
    EXPECT_TRUE(moved(all, row)) << row;
  }
}

}  // namespace
}  // namespace skiff
