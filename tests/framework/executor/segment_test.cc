// A program whose shapes depend on data runs in segments, each planned when its shapes are known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/control.h"
#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/initializer.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable.h"
#include "framework/executor/executor.h"
#include "framework/plan/plan.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The different ids, in ascending order.
Variable Unique(const Variable& ids) {
  const LayerCall call("unique", "", std::source_location::current());
  const Variable index = call.NewOutput();
  Op op("unique");
  op.SetInput("X", {call.CheckedName(ids)})
      .SetOutput("Index", {index.name()})
      .SetAttr("is_sorted", true);
  op.SetAttr("dtype", 3);
  return call.AppendFor(std::move(op));
}

Tensor Ids(const std::vector<int64_t>& ids) {
  return Tensor::FromValues<int64_t>({static_cast<int64_t>(ids.size())}, ids);
}

// The sum of the rows of a table that the ids name, each row once.
class SegmentTest : public ::testing::Test {
 protected:
  SegmentTest() {
    ids_ = layers::Data("ids", {-1}, DType::kInt64);
    different_ = Unique(ids_);
    rows_ = layers::Embedding(different_, {.rows = 6, .width = 2, .param_attr = {.name = "table"}});
    sum_ = layers::ReduceSum(rows_);
  }

  void SetTable() {
    executor_.scope().Set(
        "table", Tensor::FromValues<float>({6, 2}, {0, 1, 10, 11, 20, 21, 30, 31, 40, 41, 50, 51}));
  }

  Program main_, startup_;
  ProgramGuard guard_{&main_, &startup_};
  Variable ids_, different_, rows_, sum_;
  Executor executor_;
};

TEST_F(SegmentTest, LaterOpsGetTheShapeThatTheDataTell) {
  SetTable();
  CompiledProgram program = executor_.Compile(main_);
  const auto run = [&](const std::vector<int64_t>& ids) {
    return program.Run({{"ids", Ids(ids)}}, {sum_.name(), different_.name(), rows_.name()});
  };
  std::vector<Tensor> found = run({3, 1, 3, 3});
  EXPECT_EQ(found[0].Item<float>(), 10 + 11 + 30 + 31);
  EXPECT_THAT(found[1].ToVector<int64_t>(), ElementsAre(1, 3));
  EXPECT_THAT(found[2].ToVector<float>(), ElementsAre(10, 11, 30, 31));
  found = run({5, 4, 0, 1});
  EXPECT_EQ(found[0].Item<float>(), 1 + 21 + 81 + 101);
  EXPECT_THAT(found[1].ToVector<int64_t>(), ElementsAre(0, 1, 4, 5));
}

TEST_F(SegmentTest, ThePlanAfterItServesOtherRows) {
  SetTable();
  CompiledProgram program = executor_.Compile(main_);
  for (const auto& ids : std::vector<std::vector<int64_t>>{{1, 1, 1}, {1, 2, 1}, {4, 2, 1}}) {
    program.Run({{"ids", Ids(ids)}}, {sum_.name()});
  }
  EXPECT_EQ(program.preparation().plans, 2);
}

TEST_F(SegmentTest, TrainsWhatOnlyTheDataTell) {
  optimizer::Sgd({.learning_rate = 0.5f}).Minimize(sum_);
  executor_.Run(startup_);
  SetTable();
  executor_.Run(main_, {{"ids", Ids({2, 0, 2})}});
  EXPECT_THAT(executor_.scope().Get("table").ToVector<float>(),
              ElementsAre(-0.5, 0.5, 10, 11, 19.5, 20.5, 30, 31, 40, 41, 50, 51));
  EXPECT_EQ(executor_.scope().Get(kStepCounterName).Item<int64_t>(), 1);
}

TEST_F(SegmentTest, ABoundProgramRunsAllSegments) {
  SetTable();
  Tensor ids = Ids({3, 3, 1});
  BoundProgram bound = executor_.Compile(main_).Bind({{"ids", ids}}, {sum_.name()});
  bound.Step();
  EXPECT_EQ(bound.fetch(0).Item<float>(), 82);
  ids.data<int64_t>()[0] = 0;
  bound.Step();
  EXPECT_EQ(bound.fetch(0).Item<float>(), 83);
  EXPECT_EQ(bound.TimedStep().size(), bound.plan().instructions.size() + 2);
}

TEST_F(SegmentTest, AFeedThatOnlyALaterSegmentReadsGetsThere) {
  const Variable factor = layers::Data("factor", {1});
  const Variable scaled = layers::ElementwiseMul(sum_, factor);
  SetTable();
  const std::vector<Tensor> found =
      executor_.Run(main_, {{"ids", Ids({1, 1})}, {"factor", Tensor::FromValues<float>({1}, {3})}},
                    {scaled.name(), factor.name()});
  EXPECT_EQ(found[0].Item<float>(), 63);
  EXPECT_EQ(found[1].Item<float>(), 3);
}

// The count of runs is written before the op that refuses its data.
TEST_F(SegmentTest, AnErrorInALaterSegmentTakesBackTheEarlierOnes) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable count = layers::CreateParameter(
      {1}, DType::kFloat32, {.name = "count", .initializer = initializer::Constant(0)});
  layers::Increment(count);
  const Variable ids = layers::Data("ids", {-1}, DType::kInt64);
  const Variable sum = layers::ReduceSum(
      layers::Embedding(Unique(ids), {.rows = 6, .width = 2, .param_attr = {.name = "table"}}));
  executor_.Run(startup);
  CompiledProgram program = executor_.Compile(main);
  program.Run({{"ids", Ids({1, 2})}}, {sum.name()});
  EXPECT_THAT(ErrorText([&] {
                program.Run({{"ids", Ids({1, 9})}}, {sum.name()});
              }),
              HasSubstr("9"));
  EXPECT_EQ(executor_.scope().Get("count").Item<float>(), 1);
  program.Run({{"ids", Ids({1, 2, 3})}}, {sum.name()});
  EXPECT_EQ(executor_.scope().Get("count").Item<float>(), 2);
}

// The largest element of no rows is an Error. Only the data tell that there are none.
TEST_F(SegmentTest, AnErrorForRowsThatTheDataLeaveOutTakesBackTheEarlierSegments) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable count = layers::CreateParameter(
      {1}, DType::kFloat32, {.name = "count", .initializer = initializer::Constant(0)});
  layers::Increment(count);
  const Variable x = layers::Data("x", {-1});
  const Variable mask = layers::Data("mask", {-1}, DType::kBool);
  const LayerCall call("masked_select", "", std::source_location::current());
  Op op("masked_select");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("Mask", {call.CheckedName(mask)});
  const Variable largest =
      layers::ReduceMax(layers::Scale(call.AppendFor(std::move(op), "Y"), {.scale = 1.0f}));
  executor_.Run(startup);
  CompiledProgram program = executor_.Compile(main);
  const auto run = [&](bool selects) {
    const FeedList feeds = {{"x", Tensor::FromValues<float>({2}, {3, 5})},
                            {"mask", Tensor::FromValues<bool>({2}, {selects, false})}};
    return program.Run(feeds, {largest.name()})[0].Item<float>();
  };
  EXPECT_EQ(run(true), 3);
  EXPECT_THAT(ErrorText([&] { run(false); }), HasSubstr("reduce_max"));
  EXPECT_EQ(executor_.scope().Get("count").Item<float>(), 1);
  EXPECT_EQ(run(true), 3);
  EXPECT_EQ(executor_.scope().Get("count").Item<float>(), 2);
}

TEST_F(SegmentTest, ABoundProgramStepsAgainAfterALaterSegmentHasMadeAPersistable) {
  const Variable last =
      CreatePersistable("last", {}, DType::kFloat32, 0, std::source_location::current());
  const LayerCall call("assign", "", std::source_location::current());
  Op op("assign");
  op.SetInput("X", {call.CheckedName(sum_)}).SetOutput("Out", {last.name()});
  call.Append(std::move(op));
  SetTable();
  Tensor ids = Ids({3, 3, 1});
  BoundProgram bound = executor_.Compile(main_).Bind({{"ids", ids}}, {sum_.name()});
  bound.Step();
  EXPECT_EQ(executor_.scope().Get("last").Item<float>(), 82);
  ids.data<int64_t>()[0] = 0;
  bound.Step();
  EXPECT_EQ(executor_.scope().Get("last").Item<float>(), 83);
}

TEST_F(SegmentTest, BindRefusesUnknownFetchesAsRunDoes) {
  SetTable();
  main_.root()->CreateVar({.name = "unwritten"});
  CompiledProgram program = executor_.Compile(main_);
  const auto message = [&](const std::string& fetch) {
    return ErrorText([&] { program.Bind({{"ids", Ids({1})}}, {sum_.name(), fetch}); });
  };
  EXPECT_THAT(message("sun"), HasSubstr("fetch \"sun\": the program has no such variable"));
  EXPECT_THAT(message("unwritten"), HasSubstr("fetch \"unwritten\": nothing writes"));
  program.Bind({{"ids", Ids({1})}}, {"table", sum_.name()}).Step();
}

}  // namespace
}  // namespace skiff
