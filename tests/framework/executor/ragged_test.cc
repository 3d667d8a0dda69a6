// Ragged feeds: their LoD reaches the ops that need it, and the fetches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "framework/builder/data.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/sequence.h"
#include "framework/builder/tensor_layers.h"
#include "framework/executor/executor.h"
#include "framework/op/grad_name.h"
#include "framework/tensor/tensor.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor RaggedIds(const std::vector<int64_t>& ids, const std::vector<int64_t>& lengths) {
  Tensor tensor = Tensor::FromValues<int64_t>({static_cast<int64_t>(ids.size())}, ids);
  tensor.set_lod({OffsetsOf(lengths)});
  return tensor;
}

Tensor Labels(const std::vector<int64_t>& labels) {
  return Tensor::FromValues<int64_t>({static_cast<int64_t>(labels.size()), 1}, labels);
}

// A classifier of sequences of words.
class RaggedTest : public ::testing::Test {
 protected:
  RaggedTest() {
    embedded_ = layers::Embedding(ids_, {.rows = 10, .width = 4});
    pooled_ = layers::SequencePool(embedded_, "SUM");
    const Variable scores = layers::Fc(pooled_, 3);
    loss_ = layers::Mean(layers::SoftmaxWithCrossEntropy(scores, label_));
  }

  // Runs the network on these sequences; the labels don't matter.
  std::vector<Tensor> Run(const Tensor& ids, const std::vector<Variable>& fetches) {
    FetchList names;
    for (const Variable& fetch : fetches) names.push_back(fetch.name());
    return executor_.Run(main_, FeedsOf(ids), names);
  }

  static FeedList FeedsOf(const Tensor& ids) {
    return {{"ids", ids}, {"label", Labels(std::vector<int64_t>(ids.lod()[0].size() - 1, 0))}};
  }

  Program main_, startup_;
  ProgramGuard guard_{&main_, &startup_};
  Variable ids_ = layers::Data("ids", {-1}, DType::kInt64, {.lod_level = 1});
  Variable label_ = layers::Data("label", {-1, 1}, DType::kInt64);
  Variable embedded_, pooled_, loss_;
  Executor executor_;
};

TEST_F(RaggedTest, LayersKnowWhichVariablesAreRagged) {
  const auto level = [&](const Variable& x) { return main_.root()->FindVar(x.name())->lod_level; };
  EXPECT_EQ(level(embedded_), 1);
  EXPECT_EQ(level(pooled_), 0);
  EXPECT_THAT(pooled_.dims(), ElementsAre(-1, 4));
  EXPECT_THAT(InvalidArgumentText([&] { layers::SequencePool(pooled_, "SUM"); }),
              HasSubstr("input \"X\" has 0 LoD levels, expected at least 1"));
}

TEST_F(RaggedTest, EachSequenceIsPooledByItself) {
  executor_.Run(startup_);
  const Tensor ids = RaggedIds({1, 2, 3, 1, 4}, {2, 0, 3});
  const std::vector<Tensor> found = Run(ids, {embedded_, pooled_});
  const std::vector<float> rows = found[0].ToVector<float>();
  const std::vector<float> sums = found[1].ToVector<float>();
  ASSERT_EQ(found[1].shape(), (Shape{3, 4}));
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_FLOAT_EQ(sums[i], rows[i] + rows[4 + i]);
    EXPECT_EQ(sums[4 + i], 0);
    EXPECT_FLOAT_EQ(sums[8 + i], rows[8 + i] + rows[12 + i] + rows[16 + i]);
  }
}

TEST_F(RaggedTest, FetchesHaveTheirLoD) {
  executor_.Run(startup_);
  const std::vector<Tensor> found = Run(RaggedIds({1, 2, 3}, {1, 2}), {embedded_, pooled_});
  EXPECT_EQ(found[0].lod(), (LoD{{0, 1, 3}}));
  EXPECT_TRUE(found[1].lod().empty());
}

TEST_F(RaggedTest, OnePlanServesAllLoDsWithTheSameCounts) {
  executor_.Run(startup_);
  CompiledProgram program = executor_.Compile(main_);
  const auto run = [&](const Tensor& ids) {
    return program.Run(FeedsOf(ids), {embedded_.name(), pooled_.name()});
  };
  run(RaggedIds({1, 2, 3, 4}, {1, 3}));
  const std::vector<Tensor> other = run(RaggedIds({1, 2, 3, 4}, {3, 1}));
  EXPECT_EQ(program.cached_plans(), 1u);
  EXPECT_EQ(other[0].lod(), (LoD{{0, 3, 4}}));
  const std::vector<float> rows = other[0].ToVector<float>();
  EXPECT_EQ(other[1].data<float>()[4], rows[12]);
}

TEST_F(RaggedTest, ABoundProgramKeepsItsLoD) {
  executor_.Run(startup_);
  Tensor ids = RaggedIds({1, 2, 3}, {1, 2});
  BoundProgram bound = executor_.Compile(main_).Bind(FeedsOf(ids), {embedded_.name()});
  ids.set_lod({{0, 2, 3}});
  bound.Step();
  EXPECT_EQ(bound.fetch(0).lod(), (LoD{{0, 1, 3}}));
}

// The loss of a batch is the mean of the losses of its sequences, and so are the gradients.
TEST_F(RaggedTest, ABatchTrainsAsItsSequencesDo) {
  optimizer::Sgd({.learning_rate = 0.0f}).Minimize(loss_);
  executor_.Run(startup_);
  const std::vector<std::vector<int64_t>> sequences = {{1, 2}, {3}, {4, 5, 6, 1}};
  FetchList fetches = {loss_.name()};
  for (const auto& var : main_.root()->vars()) {
    if (var->is_parameter) fetches.push_back(GradName(var->name));
  }
  const auto run = [&](const std::vector<int64_t>& ids, const std::vector<int64_t>& lengths,
                       const std::vector<int64_t>& labels) {
    return executor_.Run(main_, {{"ids", RaggedIds(ids, lengths)}, {"label", Labels(labels)}},
                         fetches);
  };
  const std::vector<Tensor> batch = run({1, 2, 3, 4, 5, 6, 1}, {2, 1, 4}, {0, 1, 2});
  std::vector<std::vector<double>> means;
  for (const Tensor& tensor : batch)
    means.emplace_back(static_cast<size_t>(tensor.element_count()), 0.0);
  for (size_t s = 0; s < sequences.size(); ++s) {
    const std::vector<Tensor> one =
        run(sequences[s], {static_cast<int64_t>(sequences[s].size())}, {static_cast<int64_t>(s)});
    for (size_t i = 0; i < one.size(); ++i) {
      for (size_t k = 0; k < means[i].size(); ++k)
        means[i][k] += static_cast<double>(one[i].data<float>()[k]) / 3;
    }
  }
  ASSERT_GE(batch.size(), 4u);
  for (size_t i = 0; i < batch.size(); ++i) {
    for (size_t k = 0; k < means[i].size(); ++k)
      EXPECT_NEAR(batch[i].data<float>()[k], means[i][k], 1e-6) << fetches[i] << " " << k;
  }
}

Tensor RaggedRows(const std::vector<float>& rows, const std::vector<int64_t>& lengths) {
  Tensor tensor = Tensor::FromValues<float>({static_cast<int64_t>(rows.size()), 1}, rows);
  tensor.set_lod({OffsetsOf(lengths)});
  return tensor;
}

// A LoD that depends on those of two feeds, and rows that depend on one of them.
TEST(DerivedLoD, FollowsTheFeedsOfEachRun) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const layers::DataOptions ragged = {.lod_level = 1};
  const Variable x = layers::Data("x", {-1, 1}, DType::kFloat32, ragged);
  const Variable y = layers::Data("y", {-1, 1}, DType::kFloat32, ragged);
  const Variable expanded = layers::SequenceExpand(x, y);
  const Variable joined = layers::SequenceConcat({x, y});
  const Variable sums = layers::SequencePool(expanded, "SUM");
  Executor executor;
  CompiledProgram program = executor.Compile(main);
  const auto run = [&](const std::vector<int64_t>& x_lengths,
                       const std::vector<int64_t>& y_lengths) {
    return program.Run(
        {{"x", RaggedRows({1, 2, 3}, x_lengths)}, {"y", RaggedRows({7, 8, 9}, y_lengths)}},
        {expanded.name(), joined.name(), sums.name()});
  };
  std::vector<Tensor> found = run({1, 2}, {2, 1});
  EXPECT_THAT(found[0].ToVector<float>(), ElementsAre(1, 1, 2, 3));
  EXPECT_EQ(found[0].lod(), (LoD{{0, 1, 2, 4}}));
  EXPECT_THAT(found[1].ToVector<float>(), ElementsAre(1, 7, 8, 2, 3, 9));
  EXPECT_THAT(found[2].ToVector<float>(), ElementsAre(1, 1, 5));
  // The same plan serves other lengths with as many rows and sequences in all results.
  found = run({2, 1}, {1, 2});
  EXPECT_EQ(program.cached_plans(), 1u);
  EXPECT_THAT(found[0].ToVector<float>(), ElementsAre(1, 2, 3, 3));
  EXPECT_EQ(found[0].lod(), (LoD{{0, 2, 3, 4}}));
  EXPECT_THAT(found[1].ToVector<float>(), ElementsAre(1, 2, 7, 3, 8, 9));
  EXPECT_EQ(found[1].lod(), (LoD{{0, 3, 6}}));
  EXPECT_THAT(found[2].ToVector<float>(), ElementsAre(3, 3, 3));
  // Other rows follow from these.
  found = run({1, 2}, {0, 3});
  EXPECT_THAT(found[0].ToVector<float>(), ElementsAre(2, 3, 2, 3, 2, 3));
}

// The width of a batch depends on the longest sequence.
TEST(DerivedLoD, TheLongestSequenceMakesAShape) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable x = layers::Data("x", {-1, 1}, DType::kFloat32, {.lod_level = 1});
  const Variable zero = layers::FillConstant({1}, DType::kFloat32, 0);
  const Variable padded = layers::SequencePad(x, zero).padded;
  Executor executor;
  CompiledProgram program = executor.Compile(main);
  const auto run = [&](const std::vector<int64_t>& lengths) {
    return program.Run({{"x", RaggedRows({1, 2, 3}, lengths)}}, {padded.name()})[0];
  };
  EXPECT_THAT(run({1, 2}).ToVector<float>(), ElementsAre(1, 0, 2, 3));
  EXPECT_THAT(run({2, 1}).ToVector<float>(), ElementsAre(1, 2, 3, 0));
  EXPECT_EQ(program.cached_plans(), 1u);
  EXPECT_THAT(run({3, 0}).ToVector<float>(), ElementsAre(1, 2, 3, 0, 0, 0));
}

}  // namespace
}  // namespace skiff
