// Embeddings whose gradients are selected rows train on a device as on the CPU, by every optimizer,
// clipped or not, with merged gradients and with checked ones, in graphs and without. All rows that
// are looked up move, and the others stay where an optimizer only updates those. All of the program
// runs there. Skipped if there is no device.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/analysis/ops_on_host.h"
#include "framework/base/error.h"
#include "framework/plan/plan.h"
#include "memory/places.h"
#include "skiff/skiff.h"
#include "tests/harness/cuda_place.h"
#include "tests/skiff/sparse_training.h"

namespace skiff {
namespace {

using sparse_training::Batch;
using sparse_training::kWords;
using sparse_training::Loss;
using sparse_training::Spec;
using sparse_training::Specs;

constexpr int64_t kSteps = 6;

// The table before the steps and after them.
struct Tables {
  std::vector<float> initial;
  std::vector<float> trained;
};

Tables Train(const optimizer::Optimizer& optimizer, Place place,
             const optimizer::MinimizeOptions& options, bool graphs) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable loss = Loss(/*is_sparse=*/true);
  optimizer.Minimize(loss, options);
  Executor executor(place);
  executor.Run(startup);
  const auto table = [&] { return CopyToCpu(executor.scope().Get("table")).ToVector<float>(); };
  Tables tables;
  tables.initial = table();
  CompiledProgram compiled = executor.Compile(main, {.graphs = graphs});
  FeedList feeds = Batch(0);
  BoundProgram bound = compiled.Bind(feeds, {loss});
  for (const auto& [type, count] : OpsOnHost(bound.plan())) {
    ADD_FAILURE() << count << " instructions on the CPU: " << type;
  }
  for (int64_t i = 0; i < kSteps; ++i) {
    // The program reads the tensors that it is bound to.
    const FeedList batch = Batch(i);
    for (size_t k = 0; k < feeds.size(); ++k) CopyTensor(batch[k].second, &feeds[k].second);
    bound.Step();
  }
  EXPECT_EQ(bound.statistics().graphs > 0, graphs);
  tables.trained = table();
  return tables;
}

// Returns whether the steps have changed an element of the row.
bool HasMoved(const Tables& tables, int64_t row) {
  const int64_t width = std::ssize(tables.initial) / kWords;
  const auto before = tables.initial.begin() + row * width;
  return !std::equal(before, before + width, tables.trained.begin() + row * width);
}

// Returns the rows that some step has looked up.
std::set<int64_t> RowsLookedUp() {
  std::set<int64_t> rows;
  for (int64_t i = 0; i < kSteps; ++i) {
    for (const auto& [name, ids] : Batch(i)) {
      for (const int64_t id : ids.ToVector<int64_t>()) rows.insert(id);
    }
  }
  return rows;
}

// The Specs whose optimizers update no other rows than those of a gradient.
constexpr std::string_view kUpdateRowsOfGradientOnly[] = {
    "sgd",     "clipped_sgd", "sgd_by_norm", "sgd_by_value",
    "adagrad", "ftrl",        "lazy_adam",   "lazy_adamw"};

bool UpdatesRowsOfGradientOnly(const std::string& spec) {
  return std::ranges::count(kUpdateRowsOfGradientOnly, spec) > 0;
}

// Checks which rows of the table the steps have changed.
void ExpectMoved(const Tables& tables, const std::string& spec) {
  const std::set<int64_t> looked_up = RowsLookedUp();
  ASSERT_LT(std::ssize(looked_up), kWords);
  for (int64_t row = 0; row < kWords; ++row) {
    if (looked_up.contains(row)) {
      EXPECT_TRUE(HasMoved(tables, row)) << "row " << row << ", which was looked up";
    } else if (UpdatesRowsOfGradientOnly(spec)) {
      EXPECT_FALSE(HasMoved(tables, row)) << "row " << row << ", which nobody looked up";
    }
  }
}

class SparseTrainingOnCuda : public ::testing::TestWithParam<Spec> {
 protected:
  void SetUp() override {
    try {
      AllocatorOf(harness::CudaPlace());
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }
};

TEST_P(SparseTrainingOnCuda, HasTheTableOfTheCpu) {
  const std::pair<std::string, optimizer::MinimizeOptions> all_options[] = {
      {"plain", {}},
      {"merged", {.gradient_merge = {.steps = 3}}},
      {"checked", {.skip_non_finite = true}}};
  for (const auto& [name, options] : all_options) {
    SCOPED_TRACE(name);
    const auto train = [&](Place place, bool graphs) {
      return Train(*GetParam().make(), place, options, graphs);
    };
    const std::vector<float> expected = train(Place::Cpu(), false).trained;
    const Tables found = train(harness::CudaPlace(), false);
    ASSERT_EQ(found.trained.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(found.trained[i], expected[i], 2e-6f) << "row " << i / 5;
    }
    ExpectMoved(found, GetParam().name);
    EXPECT_EQ(train(harness::CudaPlace(), true).trained, found.trained) << "in graphs";
  }
}

// A few ids of a large table.
TEST_P(SparseTrainingOnCuda, NeedsLittleScratchMemory) {
  constexpr int64_t kRows = 4000;
  constexpr int64_t kWidth = 64;
  constexpr int64_t kQuarterOfTable = kRows * kWidth * int64_t{sizeof(float)} / 4;
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable ids = layers::Data("ids", {-1}, DType::kInt64);
  const Variable rows = layers::Embedding(ids, {.rows = kRows, .width = kWidth, .is_sparse = true});
  GetParam().make()->Minimize(layers::Mean(layers::Square(rows)));
  Executor executor(harness::CudaPlace());
  executor.Run(startup);
  CompiledProgram compiled = executor.Compile(main);
  const FeedList feeds = {{"ids", Tensor::FromValues<int64_t>({3}, {5, 3999, 5})}};
  const BoundProgram bound = compiled.Bind(feeds, {});
  for (const Instruction& instruction : bound.plan().instructions) {
    for (const int64_t bytes : instruction.workspace_bytes) {
      EXPECT_LE(bytes, kQuarterOfTable) << instruction.def->type;
    }
  }
}

std::vector<Spec> SpecsAndLazyOnes() {
  std::vector<Spec> specs = Specs();
  specs.push_back(sparse_training::SpecOf<optimizer::Adam>(
      "lazy_adam",
      optimizer::AdamOptions{.learning_rate = 0.01, .epsilon = 1e-2f, .lazy_mode = true}));
  specs.push_back(sparse_training::SpecOf<optimizer::AdamW>(
      "lazy_adamw",
      optimizer::AdamWOptions{.learning_rate = 0.01, .epsilon = 1e-2f, .lazy_mode = true}));
  specs.push_back(sparse_training::SpecOf<optimizer::Ftrl>(
      "ftrl", optimizer::FtrlOptions{.learning_rate = 0.1}));
  return specs;
}

TEST(SpecsOfSparseTraining, HaveThoseThatUpdateRowsOfGradientOnly) {
  for (const std::string_view name : kUpdateRowsOfGradientOnly) {
    EXPECT_EQ(std::ranges::count(SpecsAndLazyOnes(), name, &Spec::name), 1) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, SparseTrainingOnCuda, ::testing::ValuesIn(SpecsAndLazyOnes()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace skiff
