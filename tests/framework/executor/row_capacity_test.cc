// Plans for ragged feeds are made for a capacity and serve all runs whose counts round up to it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "framework/autodiff/append_backward.h"
#include "framework/base/error.h"
#include "framework/builder/control.h"
#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/initializer.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/adam.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/sequence.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/ir/program.h"
#include "memory/places.h"
#include "tests/harness/error_text.h"
#include "tests/harness/ragged_feeds.h"

namespace skiff {
namespace {

using harness::RaggedIds;
using harness::RaggedRows;
using harness::RandomIds;
using harness::RandomLengths;
using ::testing::HasSubstr;
using Lengths = std::vector<int64_t>;

constexpr int64_t kWords = 12;
constexpr int64_t kClasses = 3;

// Sequences of these lengths, with labels.
FeedList FeedsOf(const Lengths& lengths, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  const Tensor ids = RaggedIds({lengths}, kWords, &random);
  const Tensor label = RandomIds({std::ssize(lengths), 1}, kClasses, &random);
  return {{"ids", ids}, {"label", label}};
}

// A small text classifier: an embedding, a GRU and a convolution, pooled.
class RowCapacity : public ::testing::Test {
 protected:
  RowCapacity() {
    guard_.emplace(&main_, &startup_);
    main_.seed = startup_.seed = 3;
    const Variable ids = layers::Data("ids", {-1}, DType::kInt64, {.lod_level = 1});
    const Variable label = layers::Data("label", {-1, 1}, DType::kInt64);
    embedded_ = layers::Embedding(ids, {.rows = kWords, .width = 6});
    const Variable states =
        layers::DynamicGru(layers::Fc(embedded_, 12, {.bias_attr = false}), {.size = 4});
    const Variable convolved = layers::SequenceConv(embedded_, {.filters = 5, .act = "relu"});
    pooled_ = layers::Concat(
        {layers::SequencePool(states, "MAX"), layers::SequencePool(convolved, "AVERAGE")}, 1);
    loss_ = layers::Mean(layers::SoftmaxWithCrossEntropy(layers::Fc(pooled_, kClasses), label));
    guard_.reset();
  }

  void Minimize() {
    const ProgramGuard guard(&main_, &startup_);
    optimizer::Adam({.learning_rate = 0.05f}).Minimize(loss_);
  }

  CompiledProgram Compile(bool exact_rows) {
    executor_.Run(startup_);
    return Compile(exact_rows, &executor_);
  }
  CompiledProgram Compile(bool exact_rows, Executor* executor) {
    return executor->Compile(main_,
                             {.memory = {.poison_dead_memory = true}, .exact_rows = exact_rows});
  }

  FetchList Fetches() const { return {loss_.name(), pooled_.name(), embedded_.name()}; }

  Program main_, startup_;
  std::optional<ProgramGuard> guard_;
  Variable embedded_, pooled_, loss_;
  Executor executor_;
};

void ExpectNear(const Tensor& found, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(found.shape(), expected.shape()) << what;
  EXPECT_EQ(found.lod(), expected.lod()) << what;
  for (int64_t i = 0; i < found.element_count(); ++i) {
    ASSERT_NEAR(found.data<float>()[i], expected.data<float>()[i], 1e-5) << what << " " << i;
  }
}

// The second batch needs less than the first one, the third one more again.
TEST_F(RowCapacity, GivesWhatPlansForTheVeryRowsGive) {
  CompiledProgram program = Compile(/*exact_rows=*/false);
  CompiledProgram exact = Compile(/*exact_rows=*/true);
  uint64_t seed = 0;
  for (const Lengths& lengths : {Lengths{5, 1, 9, 3, 2}, Lengths{1, 1}, Lengths{7, 8, 2, 2, 4, 1},
                                 Lengths{3}, Lengths{30, 1, 2}, Lengths{4, 9, 5, 2}}) {
    const FeedList feeds = FeedsOf(lengths, ++seed);
    const std::vector<Tensor> found = program.Run(feeds, Fetches());
    const std::vector<Tensor> expected = exact.Run(feeds, Fetches());
    for (size_t i = 0; i < found.size(); ++i) {
      ExpectNear(found[i], expected[i], StrCat(Fetches()[i], " of batch ", seed));
    }
  }
}

TEST_F(RowCapacity, TrainsToTheWeightsOfPlansForTheVeryRows) {
  Minimize();
  const std::vector<Lengths> batches = {{5, 1, 9, 3}, {2, 2}, {7, 8, 2, 2, 4}, {1, 12, 3}};
  const auto train = [&](bool exact_rows) {
    Executor executor;
    executor.Run(startup_);
    CompiledProgram program = Compile(exact_rows, &executor);
    for (uint64_t step = 0; step < 12; ++step) {
      program.Run(FeedsOf(batches[step % batches.size()], step), {loss_.name()});
    }
    std::vector<std::pair<std::string, Tensor>> weights;
    for (const auto& var : main_.root()->vars()) {
      if (!var->is_parameter) continue;
      weights.emplace_back(var->name, CopyToCpu(executor.scope().Get(var->name)));
    }
    return weights;
  };
  const auto found = train(false);
  const auto expected = train(true);
  ASSERT_GE(found.size(), 6u);
  for (size_t i = 0; i < found.size(); ++i) {
    ExpectNear(found[i].second, expected[i].second, found[i].first);
  }
}

TEST_F(RowCapacity, OnePlanServesAllCountsThatRoundUpToIt) {
  CompiledProgram program = Compile(false);
  std::mt19937_64 random(7);
  for (int i = 0; i < 200; ++i) {
    // 1 to 8 sequences of 17 to 24 words in all.
    const auto sequences = static_cast<int64_t>(1 + random() % 8);
    const auto words = static_cast<int64_t>(17 + random() % 8);
    program.Run(FeedsOf(RandomLengths(words, sequences, &random), static_cast<uint64_t>(i)),
                {loss_.name()});
  }
  EXPECT_EQ(program.preparation().plans, 1);
  program.Run(FeedsOf(Lengths(9, 2)), {loss_.name()});
  EXPECT_EQ(program.preparation().plans, 2) << "9 sequences round up to 16";
}

// Which plan serves a run doesn't depend on the runs before, so a resumed training computes the
// same bits.
TEST_F(RowCapacity, APlanForMoreRowsDoesNotServeARunOfFewer) {
  CompiledProgram program = Compile(false);
  program.Run(FeedsOf({20, 20}), {loss_.name()});
  program.Run(FeedsOf({2, 2}), {loss_.name()});
  EXPECT_EQ(program.preparation().plans, 2);
}

TEST_F(RowCapacity, PlansShareOneArena) {
  Minimize();
  CompiledProgram program = Compile(false);
  program.Run(FeedsOf(Lengths(8, 32)), {loss_.name()});
  const int64_t before = AllocatorOf(Place::Cpu()).statistics().live_bytes;
  for (const int64_t length : {4, 8, 16, 24}) {
    program.Run(FeedsOf(Lengths(8, length)), {loss_.name()});
  }
  EXPECT_EQ(program.cached_plans(), 5u);
  EXPECT_EQ(AllocatorOf(Place::Cpu()).statistics().live_bytes, before);
}

TEST_F(RowCapacity, AnArenaThatGrowsServesEarlierPlansFromItsNewPlace) {
  CompiledProgram program = Compile(false);
  const FeedList small = FeedsOf({2, 3});
  const Tensor before = program.Run(small, {pooled_.name()})[0];
  program.Run(FeedsOf(Lengths(8, 60)), {pooled_.name()});
  ExpectNear(program.Run(small, {pooled_.name()})[0], before, "after the arena has moved");
  EXPECT_EQ(program.preparation().plans, 2);
}

TEST_F(RowCapacity, ABoundProgramTakesOtherFeeds) {
  CompiledProgram program = Compile(false);
  CompiledProgram exact = Compile(true);
  BoundProgram bound = program.Bind(FeedsOf({3, 4, 1}), Fetches());
  const FeedList other = FeedsOf({1, 1, 1, 2, 2}, 5);
  ASSERT_TRUE(bound.Feed(other));
  bound.Step();
  ExpectNear(bound.fetch(1), exact.Run(other, Fetches())[1], "pooled");
  EXPECT_FALSE(bound.Feed(FeedsOf({9}))) << "9 words round up to 16";
  bound.Step();
  ExpectNear(bound.fetch(1), exact.Run(other, Fetches())[1], "pooled, fed as before");
}

TEST_F(RowCapacity, FetchesKeepTheirLoD) {
  CompiledProgram program = Compile(false);
  const std::vector<Tensor> first = program.Run(FeedsOf({3, 4}), {embedded_.name()});
  program.Run(FeedsOf({1, 5}), {embedded_.name()});
  EXPECT_EQ(first[0].lod(), (LoD{{0, 3, 7}}));
}

TEST_F(RowCapacity, ErrorsHaveTheNumbersThatTheUserKnows) {
  CompiledProgram program = Compile(false);
  FeedList feeds = FeedsOf({3, 4});
  feeds[1].second = FeedsOf({1, 1, 1})[1].second;
  EXPECT_THAT(InvalidArgumentText([&] { program.Run(feeds, {loss_.name()}); }),
              HasSubstr("[3, 1]"));
}

TEST_F(RowCapacity, AnErrorInTheDataLeavesTheScopeAsItWas) {
  Minimize();
  CompiledProgram program = Compile(false);
  FeedList feeds = FeedsOf({3, 4});
  program.Run(feeds, {loss_.name()});
  const auto weights = [&] {
    std::vector<std::vector<float>> values;
    for (const auto& var : main_.root()->vars()) {
      if (!var->is_parameter) continue;
      values.push_back(executor_.scope().Get(var->name).ToVector<float>());
    }
    return values;
  };
  const std::vector<std::vector<float>> before = weights();
  const int64_t step = executor_.scope().Get(kStepCounterName).Item<int64_t>();
  feeds[1].second.data<int64_t>()[0] = kClasses;
  EXPECT_THAT(ErrorText([&] { program.Run(feeds, {loss_.name()}); }), HasSubstr("label"));
  EXPECT_EQ(executor_.scope().Get(kStepCounterName).Item<int64_t>(), step);
  EXPECT_EQ(weights(), before);
}

// The mean of no rows is an Error, which is found before the run changes anything.
TEST_F(RowCapacity, AnErrorForARunWithoutRowsLeavesTheScopeAsItWas) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable count = layers::CreateParameter(
      {1}, DType::kFloat32, {.name = "count", .initializer = initializer::Constant(0)});
  layers::Increment(count);
  const Variable x = layers::Data("x", {-1, 2}, DType::kFloat32, {.lod_level = 1});
  const Variable y = layers::Data("y", {-1, 1}, DType::kFloat32, {.lod_level = 1});
  const Variable rows = layers::Scale(x, {.scale = 2.0f});
  const FetchList fetches = {
      layers::Mean(rows).name(), layers::ReduceMax(rows, {.dims = {0}}).name(),
      layers::ReduceMin(rows).name(), layers::ReduceMean(rows).name(),
      // Without rows only if no sequence is repeated.
      layers::ReduceMax(layers::SequenceExpand(layers::SequencePool(x, "SUM"), y)).name()};
  executor_.Run(startup);
  CompiledProgram program = executor_.Compile(main);
  const auto run = [&](const Lengths& of_x, const Lengths& of_y, const std::string& fetch) {
    program.Run({{"x", RaggedRows({of_x}, 2)}, {"y", RaggedRows({of_y}, 1)}}, {fetch});
  };
  for (size_t i = 0; i < fetches.size(); ++i) {
    run({2, 3}, {1, 2}, fetches[i]);
    const float before = executor_.scope().Get("count").Item<float>();
    const bool of_x = i + 1 < fetches.size();
    EXPECT_THAT(ErrorText([&] {
                  run(of_x ? Lengths{0, 0} : Lengths{2, 3}, {0, 0}, fetches[i]);
                }),
                HasSubstr("elements"));
    EXPECT_EQ(executor_.scope().Get("count").Item<float>(), before) << fetches[i];
    run({1, 1}, {1, 1}, fetches[i]);
    EXPECT_EQ(executor_.scope().Get("count").Item<float>(), before + 1) << fetches[i];
  }
}

// A slice of at most 5 rows: with 8 sequences and with 6 it has as many.
TEST(RowCapacityOfOtherShapes, ClampedRowsAreNotTakenForConstantOnes) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable x = layers::Data("x", {-1, 2}, DType::kFloat32, {.lod_level = 1});
  const Variable first =
      layers::Slice(layers::SequencePool(x, "SUM"), {.axes = {0}, .starts = {0}, .ends = {5}});
  Executor executor;
  CompiledProgram program = executor.Compile(main);
  for (const int64_t sequences : {8, 3, 6}) {
    const Lengths lengths(static_cast<size_t>(sequences), 1);
    const Tensor fed = RaggedRows({lengths}, 2, /*first=*/0, /*step=*/1);
    const Tensor found = program.Run({{"x", fed}}, {first.name()})[0];
    ASSERT_EQ(found.shape(), (Shape{std::min<int64_t>(sequences, 5), 2}));
    for (int64_t i = 0; i < found.element_count(); ++i) {
      EXPECT_EQ(found.data<float>()[i], static_cast<float>(i));
    }
  }
}

// Feeds that are alike in the run that makes the plan and differ later.
class FeedsThatWereAlike : public ::testing::Test {
 protected:
  static Variable Ragged(const std::string& name) {
    return layers::Data(name, {-1, 1}, DType::kFloat32, {.lod_level = 1});
  }

  // Runs the fetches on sequences of these lengths, 4 rows each, and expects what plans for the
  // very rows give.
  void ExpectExact(const FetchList& fetches, const std::vector<std::string>& feeds,
                   const std::vector<std::vector<Lengths>>& runs) {
    CompiledProgram program = executor_.Compile(main_, {.memory = {.poison_dead_memory = true}});
    CompiledProgram exact = executor_.Compile(main_, {.exact_rows = true});
    for (size_t run = 0; run < runs.size(); ++run) {
      FeedList fed;
      for (size_t i = 0; i < feeds.size(); ++i) {
        fed.emplace_back(feeds[i], RaggedRows({runs[run][i]}, 1, /*first=*/1, /*step=*/1));
      }
      const std::vector<Tensor> found = program.Run(fed, fetches);
      const std::vector<Tensor> expected = exact.Run(fed, fetches);
      for (size_t i = 0; i < found.size(); ++i) {
        ExpectNear(found[i], expected[i], StrCat(fetches[i], " in run ", run));
      }
    }
  }

  Program main_, startup_;
  ProgramGuard guard_{&main_, &startup_};
  Executor executor_;
};

TEST_F(FeedsThatWereAlike, RaggedValuesHaveTheRowsOfTheirOwnLoD) {
  const Variable x = Ragged("x"), y = Ragged("y");
  const Variable e = layers::SequenceExpand(x, y);
  const FetchList fetches = {e.name(), layers::SequenceExpand(x, x).name(),
                             layers::Concat({e, e}).name()};
  ExpectExact(fetches, {"x", "y"},
              {{{2, 2}, {2, 2}}, {{1, 3}, {2, 2}}, {{3, 1}, {1, 3}}, {{2, 2}, {2, 2}}});
}

// The rows of the first one are those of two LoDs, those of the second one are of either.
TEST_F(FeedsThatWereAlike, ValuesWithoutALoDHaveTheRowsOfTheRightOnes) {
  const Variable x = Ragged("x"), y = Ragged("y"), z = Ragged("z");
  const Variable by_y = layers::SequenceExpand(x, y);
  const Variable by_z = layers::SequenceExpand(x, z);
  const FetchList fetches = {layers::Concat({by_y, by_z}).name(),
                             layers::Concat({by_y, by_y}).name(),
                             layers::Concat({by_z, by_z}).name()};
  ExpectExact(fetches, {"x", "y", "z"},
              {{{2, 2}, {2, 2}, {2, 2}},
               {{1, 3}, {2, 2}, {3, 1}},
               {{1, 3}, {3, 1}, {2, 2}},
               {{3, 1}, {1, 3}, {3, 1}}});
}

// The first one has the rows of a LoD that has as many as there are sequences, in the first run.
TEST_F(FeedsThatWereAlike, SumsOfRowsAreThoseOfTheRightOnes) {
  const Variable w = Ragged("w"), x = Ragged("x"), y = Ragged("y");
  const Variable expanded = layers::SequenceExpand(x, y);
  const FetchList fetches = {layers::Concat({layers::SequencePool(w, "SUM"), expanded}).name()};
  ExpectExact(fetches, {"w", "x", "y"},
              {{{2, 3}, {1, 1, 1, 1}, {1, 1, 1, 1}}, {{2, 3}, {2, 0, 1, 1}, {2, 0, 1, 1}}});
}

// LoDs that are derived from feeds that were alike need not fit together in other runs.
TEST_F(FeedsThatWereAlike, DerivedRowsThatDoNotFitAreAnError) {
  const Variable x = Ragged("x"), y = Ragged("y"), z = Ragged("z");
  const Variable joined =
      layers::Concat({layers::SequenceExpand(x, y), layers::SequenceExpand(x, z)}, 1);
  CompiledProgram program = executor_.Compile(main_);
  const auto run = [&](const std::vector<int64_t>& of_x, const std::vector<int64_t>& of_y,
                       const std::vector<int64_t>& of_z) {
    return program.Run(
        {{"x", RaggedRows({of_x}, 1)}, {"y", RaggedRows({of_y}, 1)}, {"z", RaggedRows({of_z}, 1)}},
        {joined.name()})[0];
  };
  EXPECT_EQ(run({10, 10}, {10, 10}, {10, 10}).shape(), (Shape{200, 2}));
  EXPECT_THROW(run({9, 11}, {9, 11}, {11, 9}), Error);
  EXPECT_EQ(run({9, 11}, {9, 11}, {9, 11}).shape(), (Shape{202, 2}));
}

// In the first run, the sequence with rows isn't repeated: a plan for the very rows serves it.
TEST_F(FeedsThatWereAlike, ARunWithoutRowsDoesNotKeepOthersFromAPlanForACapacity) {
  const Variable x = Ragged("x"), y = Ragged("y");
  const Variable repeated = layers::SequenceExpand(x, y);
  CompiledProgram program = executor_.Compile(main_);
  const auto rows = [&](const Lengths& of_x, const Lengths& of_y) {
    const FeedList feeds = {{"x", RaggedRows({of_x}, 1)}, {"y", RaggedRows({of_y}, 1)}};
    return program.Run(feeds, {repeated.name()})[0].shape()[0];
  };
  EXPECT_EQ(rows({0, 4}, {4, 0}), 0);
  EXPECT_EQ(rows({1, 3}, {2, 2}), 8);
  EXPECT_EQ(rows({1, 3}, {1, 3}), 10);
  EXPECT_EQ(rows({1, 3}, {3, 1}), 6);
  EXPECT_EQ(program.preparation().plans, 2);
}

// An op that wants feeds with equal LoDs refuses the run with unequal ones that is tried.
TEST_F(FeedsThatWereAlike, FeedsThatMustBeAlikeHaveAPlanForACapacity) {
  const Variable x = layers::Data("x", {-1, 3});
  const Variable ids = layers::Data("ids", {-1, 1}, DType::kInt64, {.lod_level = 1});
  const Variable sums = layers::SequenceScatter(x, ids, Ragged("updates"));
  CompiledProgram program = executor_.Compile(main_);
  for (const Lengths& lengths : {Lengths{5, 12}, Lengths{9, 8}, Lengths{10, 7, 4}}) {
    const Tensor updates = RaggedRows({lengths}, 1);
    Tensor fed_ids(updates.shape(), DType::kInt64);
    std::ranges::fill(fed_ids.values<int64_t>(), 1);
    fed_ids.set_lod(updates.lod());
    Tensor zeros({std::ssize(lengths), 3}, DType::kFloat32);
    std::ranges::fill(zeros.values<float>(), 0.0f);
    const Tensor found =
        program.Run({{"ids", fed_ids}, {"updates", updates}, {"x", zeros}}, {sums.name()})[0];
    for (size_t i = 0; i < lengths.size(); ++i) {
      EXPECT_EQ(found.data<float>()[3 * i + 1], static_cast<float>(lengths[i]));
    }
  }
  EXPECT_EQ(program.preparation().plans, 1);
}

// sequence_expand_as reads only the LoD of `late`, so a plan makes `late` when `wide` is gone.
TEST(RowCapacityOfOtherShapes, RowsFollowFromALoDBeforeItsValueIsMade) {
  constexpr int64_t kWidth = 256;
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable x = layers::Data("x", {-1, 1}, DType::kFloat32);
  const Variable y = layers::Data("y", {-1, 2}, DType::kFloat32, {.lod_level = 1});
  const Variable late = layers::Fc(y, kWidth);
  const Variable expanded = layers::SequenceExpandAs(x, late);
  const Variable wide = layers::Fc(expanded, kWidth);
  const Variable scaled = layers::ElementwiseMul(late, layers::ReduceSum(wide));
  const FetchList fetches = {expanded.name(), layers::ReduceSum(scaled).name()};
  Executor executor;
  executor.Run(startup);
  CompiledProgram program = executor.Compile(main);
  for (const int64_t rows : {7, 5}) {
    const FeedList feeds = {{"x", Tensor::FromValues<float>({2, 1}, {3, 4})},
                            {"y", RaggedRows({{2, rows - 2}}, 2)}};
    const Tensor found = program.Run(feeds, fetches)[0];
    ASSERT_EQ(found.shape(), (Shape{rows, 1}));
    for (int64_t i = 0; i < rows; ++i) EXPECT_EQ(found.data<float>()[i], i < 2 ? 3 : 4);
  }
  EXPECT_EQ(program.cached_plans(), 1u);
}

// reshape2's XShape is [0, rows, 2]: it carries the shape for the gradient.
TEST(RowCapacityOfOtherShapes, CarriedShapesHaveTheirRowsInAnotherDim) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable x =
      layers::Data("x", {-1, 4}, DType::kFloat32, {.lod_level = 1, .stop_gradient = false});
  const Variable y = layers::Reshape(layers::Scale(x, {.scale = 2.0f}), {-1, 2});
  const Variable loss = layers::ReduceSum(layers::ElementwiseMul(y, y));
  optimizer::Adam({.learning_rate = 0.1f})
      .Minimize(layers::ElementwiseAdd(loss, layers::ReduceSum(layers::Fc(x, 1))));
  Executor executor;
  executor.Run(startup);
  CompiledProgram program = executor.Compile(main);
  for (const int64_t rows : {3, 7, 5}) {
    const Tensor fed = RaggedRows({{1, rows - 1}}, 4, /*first=*/0, /*step=*/1);
    const std::vector<Tensor> found = program.Run({{"x", fed}}, {"x@GRAD"});
    ASSERT_EQ(found[0].shape(), (Shape{rows, 4}));
  }
  EXPECT_EQ(program.cached_plans(), 1u);
}

// The same where the gradient is in a later segment than the reshape: the shape crosses the border.
TEST(RowCapacityOfOtherShapes, CarriedShapesCrossTheBorderOfASegment) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable x =
      layers::Data("x", {-1, 4}, DType::kFloat32, {.lod_level = 1, .stop_gradient = false});
  const Variable y = layers::Reshape(layers::Scale(x, {.scale = 2.0f}), {-1, 2});
  // Only a run can tell how many there are.
  const Variable positive = layers::WhereIndex(layers::Cast(x, DType::kBool));
  const Variable none =
      layers::Scale(layers::ReduceSum(layers::Cast(positive, DType::kFloat32)), {.scale = 0.0f});
  const Variable loss = layers::ReduceSum(layers::ElementwiseMul(y, y)) + none;
  AppendBackward(DefaultOpRegistry(), &main, loss.name());
  Executor executor;
  CompiledProgram program = executor.Compile(main);
  for (const int64_t rows : {10, 11, 9}) {
    const Tensor fed = RaggedRows({{1, rows - 1}}, 4, /*first=*/1, /*step=*/1);
    const std::vector<Tensor> found = program.Run({{"x", fed}}, {"x@GRAD"});
    ASSERT_EQ(found[0].shape(), (Shape{rows, 4}));
    EXPECT_EQ(found[0].values<float>()[5], 8 * fed.values<float>()[5]);
  }
}

// A shape in which the rows are another dim than the first.
TEST(RowCapacityOfOtherShapes, FallsBackToPlansForTheVeryRows) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable x = layers::Data("x", {-1, 2}, DType::kFloat32, {.lod_level = 1});
  const Variable y = layers::Reshape(layers::Scale(x, {.scale = 2.0f}), {1, -1});
  Executor executor;
  CompiledProgram program = executor.Compile(main);
  for (const int64_t rows : {3, 5, 4}) {
    const Tensor fed = RaggedRows({{1, rows - 1}}, 2, /*first=*/0, /*step=*/1);
    const std::vector<Tensor> found = program.Run({{"x", fed}}, {y.name()});
    ASSERT_EQ(found[0].shape(), (Shape{1, 2 * rows}));
    for (int64_t i = 0; i < 2 * rows; ++i) EXPECT_EQ(found[0].data<float>()[i], 2.0f * i);
  }
  EXPECT_EQ(program.cached_plans(), 3u);
}

}  // namespace
}  // namespace skiff
