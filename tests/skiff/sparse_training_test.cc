// Embeddings whose gradients are selected rows train as those with dense gradients, by every
// optimizer, clipped or not, with the optimizers' passes on and off.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "skiff/skiff.h"

namespace skiff {
namespace {

using optimizer::Optimizer;

constexpr int64_t kWords = 23;

struct Spec {
  std::string name;
  std::function<std::unique_ptr<Optimizer>()> make;
};

template <class Made, class Options>
Spec SpecOf(const std::string& name, Options options) {
  return {name, [options] { return std::make_unique<Made>(options); }};
}

std::vector<Spec> Specs() {
  using namespace optimizer;  // NOLINT(google-build-using-namespace): a table of them
  // Large epsilons: rows without a gradient have states of 0, which rounding must not decide about.
  return {
      SpecOf<Sgd>("sgd", SgdOptions{.learning_rate = 0.1}),
      SpecOf<Sgd>("decayed_sgd",
                  SgdOptions{.learning_rate = 0.1, .regularization = L2Decay(0.01f)}),
      SpecOf<Sgd>("clipped_sgd", SgdOptions{.learning_rate = 0.1, .clip = ClipByGlobalNorm(0.1f)}),
      SpecOf<Sgd>("sgd_by_norm", SgdOptions{.learning_rate = 0.1, .clip = ClipByNorm(0.1f)}),
      SpecOf<Sgd>("sgd_by_value", SgdOptions{.learning_rate = 0.1, .clip = ClipByValue(0.01f)}),
      SpecOf<Momentum>("momentum", MomentumOptions{.learning_rate = 0.1, .use_nesterov = true}),
      SpecOf<LarsMomentum>("lars", LarsMomentumOptions{.learning_rate = 0.1}),
      SpecOf<Adam>("adam", AdamOptions{.learning_rate = 0.01, .epsilon = 1e-2f}),
      SpecOf<AdamW>("adamw", AdamWOptions{.learning_rate = 0.01, .epsilon = 1e-2f}),
      SpecOf<Adamax>("adamax", AdamaxOptions{.learning_rate = 0.01, .epsilon = 1e-2f}),
      SpecOf<Adagrad>("adagrad", AdagradOptions{.learning_rate = 0.1, .epsilon = 1e-2f}),
      SpecOf<DecayedAdagrad>("decayed_adagrad",
                             DecayedAdagradOptions{.learning_rate = 0.1, .epsilon = 1e-2f}),
      SpecOf<Adadelta>("adadelta", AdadeltaOptions{.learning_rate = 1.0, .epsilon = 1e-2f}),
      SpecOf<RmsProp>("rmsprop", RmsPropOptions{.learning_rate = 0.01, .epsilon = 1e-2f}),
      SpecOf<Lamb>("lamb", LambOptions{.learning_rate = 0.01, .epsilon = 1e-2f})};
}

// A table of words is looked up twice, so gradients add up, and words repeat.
Variable Loss(bool is_sparse) {
  const auto embed = [&](const Variable& ids) {
    return layers::Embedding(
        ids, {.rows = kWords, .width = 5, .is_sparse = is_sparse, .param_attr = {.name = "table"}});
  };
  const Variable left = layers::Data("left", {-1}, DType::kInt64);
  const Variable right = layers::Data("right", {-1}, DType::kInt64);
  const Variable x = layers::Concat({embed(left), embed(right)}, 1);
  return layers::Mean(layers::Square(layers::Fc(x, 3, {.act = "tanh"})));
}

FeedList Batch(int64_t i) {
  return {{"left", Tensor::FromValues<int64_t>({4}, {i, 2, 2, 7})},
          {"right", Tensor::FromValues<int64_t>({4}, {2, 19, i + 3, 7})}};
}

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
