// Shapes, bounds and axes that a program computes from shapes and constants (SlotDef::attribute)
// are numbers that the plan knows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "framework/analysis/verifier.h"
#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/dynamic_rnn.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/sequence.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/executor/lowering/plan_check.h"
#include "framework/ir/text.h"
#include "framework/plan/plan.h"
#include "memory/allocator.h"
#include "memory/places.h"
#include "tests/harness/error_text.h"
#include "tests/harness/ragged_feeds.h"

namespace skiff {
namespace {

using harness::RaggedRows;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Ints = std::vector<int32_t>;
using Lengths = std::vector<int64_t>;
using Inputs = std::vector<std::pair<std::string, std::vector<Variable>>>;

// Appends an op with one output.
Variable Make(const std::string& type, const Inputs& inputs, const AttributeMap& attrs = {}) {
  const LayerCall call(type, "", std::source_location::current());
  Op op(type);
  for (const auto& [slot, variables] : inputs) op.SetInput(slot, call.CheckedNames(variables));
  op.attrs = attrs;
  return call.AppendFor(std::move(op));
}

// The numbers from `begin` to before `end`.
Variable Part(const Variable& numbers, int32_t begin, int32_t end) {
  return Make("slice", {{"Input", {numbers}}},
              {{"axes", Ints{0}}, {"starts", Ints{begin}}, {"ends", Ints{end}}});
}

// int32 [1]: the extent of dim 0.
Variable RowsOf(const Variable& x) { return Part(layers::ShapeOf(x), 0, 1); }

Variable Number(int32_t value) { return layers::FillConstant({1}, DType::kInt32, value); }

Variable Reshaped(const Variable& x, const std::vector<Variable>& dims) {
  const LayerCall call("reshape2", "", std::source_location::current());
  Op op("reshape2");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("ShapeTensor", call.CheckedNames(dims));
  op.SetAttr("shape", Ints(dims.size(), -1)).SetOutput("XShape", {call.NewSavedOutput()});
  return call.AppendFor(std::move(op));
}

// [rows, width] with the numbers 0, 1, …
Tensor Counted(const Shape& shape) {
  Tensor tensor(shape, DType::kFloat32);
  std::iota(tensor.values<float>().begin(), tensor.values<float>().end(), 0.0f);
  return tensor;
}

class ComputedShapes : public ::testing::Test {
 protected:
  void ExpectVerified() { EXPECT_THAT(VerifyProgram(DefaultOpRegistry(), main_), IsEmpty()); }

  Program main_, startup_;
  ProgramGuard guard_{&main_, &startup_};
  Executor executor_;
};

TEST_F(ComputedShapes, BecomeAttributesAndLeaveNothingToRun) {
  const Variable x = layers::Data("x", {-1, 2, 3});
  const Variable y = Make("reshape2", {{"X", {x}}, {"ShapeTensor", {RowsOf(x), Number(6)}}},
                          {{"shape", Ints{-1, 6}}});
  EXPECT_THAT(y.dims(), ElementsAre(-1, -1));
  ExpectVerified();
  CompiledProgram program = executor_.Compile(main_);
  for (const int64_t rows : {2, 3, 5}) {
    const Tensor fed = Counted({rows, 2, 3});
    BoundProgram bound = program.Bind({{"x", fed}}, {y.name()});
    ASSERT_EQ(bound.plan().instructions.size(), 1);
    EXPECT_THAT(bound.plan().instructions[0].op->Input("ShapeTensor"), IsEmpty());
    bound.Step();
    EXPECT_EQ(bound.fetch(0).shape(), Shape({rows, 6}));
    EXPECT_EQ(bound.fetch(0).ToVector<float>(), fed.ToVector<float>());
  }
}

TEST_F(ComputedShapes, FollowFromAnyOps) {
  const Variable x = layers::Data("x", {-1, 4, 6});
  const Variable shape = layers::ShapeOf(x);
  // Half of the rows, rounded down.
  const Variable rows = layers::Cast(Part(shape, 0, 1), DType::kFloat32);
  const Variable half = layers::Cast(layers::Floor(rows * 0.5f), DType::kInt32);
  const Variable product = Make("reduce_prod", {{"X", {shape}}}, {{"keep_dim", true}});
  const Variable rest = Make("elementwise_floordiv", {{"X", {product}}, {"Y", {half}}});
  const Variable both = layers::Squeeze(layers::Stack({half, rest}, 1), {0});
  const Variable picked =
      layers::Gather(layers::Concat({both, shape}), layers::AssignValue({2}, Ints{0, 1}));
  const Variable y = layers::ReshapeTo(x, picked);
  EXPECT_THAT(y.dims(), ElementsAre(-1, -1));
  ExpectVerified();
  for (const auto& [count, expected] :
       std::vector<std::pair<int64_t, Shape>>{{5, {2, 60}}, {3, {1, 72}}, {8, {4, 48}}}) {
    const auto found =
        executor_.Run(main_, {{"x", Counted({count, 4, 6})}}, {y.name(), shape.name()});
    EXPECT_EQ(found[0].shape(), expected);
    EXPECT_THAT(found[1].ToVector<int32_t>(), ElementsAre(count, 4, 6));
  }
}

// Otherwise such an op begins a segment, in which nobody knows its length.
TEST_F(ComputedShapes, MayBeLengthsOfRanges) {
  const Variable x = layers::Data("x", {-1, 2});
  const Variable rows = RowsOf(x);
  const Variable numbers =
      Make("range", {{"Start", {Number(0)}}, {"End", {rows}}, {"Step", {Number(1)}}});
  const Variable y = layers::ExpandTo(layers::Reshape(numbers, {-1, 1}), layers::ShapeOf(x));
  const Variable z = Reshaped(x, {Part(numbers, -1, 1000), Number(-1)});
  ExpectVerified();
  CompiledProgram program = executor_.Compile(main_);
  const auto found = program.Run({{"x", Counted({3, 2})}}, {y.name(), numbers.name(), z.name()});
  EXPECT_THAT(found[0].ToVector<int32_t>(), ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_THAT(found[1].ToVector<int32_t>(), ElementsAre(0, 1, 2));
  EXPECT_EQ(found[2].shape(), Shape({2, 3}));
  EXPECT_EQ(program.preparation().plans, 1);
}

// Range's elements would take 8 GB.
TEST_F(ComputedShapes, TakeNoMemoryForMoreThanAFewElements) {
  Make("range", {{"Start", {Number(0)}}, {"End", {Number(2'000'000'000)}}, {"Step", {Number(1)}}});
  ExpectVerified();
  Allocator& memory = AllocatorOf(Place::Cpu());
  memory.ResetPeaks();
  const int64_t before = memory.statistics().peak_bytes;
  EXPECT_FALSE(FindNoPlan(DefaultOpRegistry(), main_));
  EXPECT_LT(memory.statistics().peak_bytes - before, 1 << 20);
}

TEST_F(ComputedShapes, AreKnownInLaterSegments) {
  const Variable x = layers::Data("x", {-1, 2});
  const Variable rows = RowsOf(x);
  const Variable positive = layers::MaskedSelect(x, layers::GreaterThan(x, layers::ZerosLike(x)));
  const Variable sum = layers::ReduceSum(positive);
  const Variable y = Reshaped(x + sum, {Number(2), rows});
  ExpectVerified();
  CompiledProgram program = executor_.Compile(main_);
  for (const int64_t count : {2, 3, 2}) {
    const auto found = program.Run({{"x", Counted({count, 2})}}, {y.name()});
    const auto last = static_cast<float>(2 * count - 1);
    EXPECT_EQ(found[0].shape(), Shape({2, count}));
    EXPECT_EQ(found[0].ToVector<float>().back(), last + last * (last + 1) / 2);
  }
}

// One plan serves batches of 5, 6 and 7 rows, and has the numbers of each.
TEST_F(ComputedShapes, AreThoseOfTheRowsOfTheMoment) {
  const Variable x = layers::Data("x", {-1, 6}, DType::kFloat32, {.lod_level = 1});
  const Variable rows = RowsOf(x);
  const Variable y = Reshaped(x, {rows, Number(2), Number(3)});
  const Variable filled = Make("fill_constant", {{"ShapeTensorList", {rows, Number(2)}}},
                               {{"dtype", static_cast<int32_t>(DType::kFloat32)}, {"value", 3.0f}});
  const Variable row = layers::FillConstant({1, 2}, DType::kFloat32, 4);
  const Variable expanded =
      Make("expand_v2", {{"X", {row}}, {"expand_shapes_tensor", {rows, Number(2)}}});
  const Variable tiled = Make("tile", {{"X", {row}}, {"repeat_times_tensor", {rows, Number(1)}}});
  const Variable drawn = Make("uniform_random", {{"ShapeTensorList", {rows, Number(2)}}});
  ExpectVerified();
  CompiledProgram program = executor_.Compile(main_);
  for (const Lengths& lengths : {Lengths{2, 3}, Lengths{3, 3}, Lengths{4, 3}, Lengths{1, 4}}) {
    const Tensor fed = RaggedRows({lengths}, 6, 0, 1);
    const int64_t count = lengths[0] + lengths[1];
    const auto found = program.Run({{"x", fed}}, {y.name(), filled.name(), expanded.name(),
                                                  tiled.name(), drawn.name(), rows.name()});
    EXPECT_EQ(found[0].shape(), Shape({count, 2, 3}));
    EXPECT_EQ(found[0].ToVector<float>(), fed.ToVector<float>());
    const auto size = static_cast<size_t>(2 * count);
    EXPECT_EQ(found[1].ToVector<float>(), std::vector<float>(size, 3));
    EXPECT_EQ(found[2].ToVector<float>(), std::vector<float>(size, 4));
    EXPECT_EQ(found[3].ToVector<float>(), std::vector<float>(size, 4));
    EXPECT_EQ(found[4].shape(), Shape({count, 2}));
    EXPECT_THAT(found[5].ToVector<int32_t>(), ElementsAre(count));
  }
  EXPECT_EQ(program.preparation().plans, 1);
}

// The kernel of slice is prepared for its bounds.
TEST_F(ComputedShapes, ThatAKernelNeedsTakeAPlanForEachNumberOfRows) {
  const Variable x = layers::Data("x", {-1, 2}, DType::kFloat32, {.lod_level = 1});
  const Variable rows = RowsOf(x);
  const Variable before = Make("elementwise_sub", {{"X", {rows}}, {"Y", {Number(1)}}});
  const Variable last =
      Make("slice",
           {{"Input", {layers::Relu(x)}}, {"StartsTensor", {before}}, {"EndsTensorList", {rows}}},
           {{"axes", Ints{0}}, {"starts", Ints{}}, {"ends", Ints{}}});
  ExpectVerified();
  CompiledProgram program = executor_.Compile(main_);
  for (const Lengths& lengths : {Lengths{2, 3}, Lengths{3, 3}, Lengths{4, 3}, Lengths{2, 3}}) {
    const auto end = static_cast<float>(2 * (lengths[0] + lengths[1]));
    const auto found = program.Run({{"x", RaggedRows({lengths}, 2, 0, 1)}}, {last.name()});
    EXPECT_THAT(found[0].ToVector<float>(), ElementsAre(end - 2, end - 1));
  }
}

// Trains two programs that differ only in where the shapes come from. Returns the parameters.
std::vector<std::vector<float>> Train(bool by_tensor, const FeedList& feeds,
                                      const std::function<Variable(bool by_tensor)>& build) {
  Program main, startup;
  main.seed = startup.seed = 5;
  const ProgramGuard guard(&main, &startup);
  optimizer::Sgd({.learning_rate = 0.1}).Minimize(layers::Mean(build(by_tensor)));
  EXPECT_THAT(VerifyProgram(DefaultOpRegistry(), main), IsEmpty());
  Executor executor;
  executor.Run(startup, {}, {});
  CompiledProgram program = executor.Compile(main);
  for (int step = 0; step < 3; ++step) program.Run(feeds, {});
  std::vector<std::vector<float>> parameters;
  for (const auto& var : main.root()->vars()) {
    if (var->is_parameter) {
      parameters.push_back(executor.scope().Get(var->name).ToVector<float>());
    }
  }
  EXPECT_THAT(parameters, ::testing::Not(IsEmpty()));
  return parameters;
}

void ExpectSameTraining(const FeedList& feeds,
                        const std::function<Variable(bool by_tensor)>& build) {
  EXPECT_EQ(Train(true, feeds, build), Train(false, feeds, build));
}

TEST_F(ComputedShapes, HaveTheGradientsOfAttributes) {
  ExpectSameTraining({{"x", Counted({4, 6})}}, [](bool by_tensor) {
    const Variable x = layers::Fc(layers::Data("x", {-1, 6}) * 0.1f, 6, {.act = "tanh"});
    const Variable rows = RowsOf(x);
    const Variable half = Make("elementwise_floordiv", {{"X", {rows}}, {"Y", {Number(2)}}});
    if (!by_tensor) {
      return layers::Slice(layers::Reshape(x, {-1, 2, 3}),
                           {.axes = {0}, .starts = {2}, .ends = {4}}) *
             0.25f;
    }
    const Variable cubes = Reshaped(x, {rows, Number(2), Number(3)});
    const Variable y = Make(
        "slice", {{"Input", {cubes}}, {"StartsTensorList", {half}}, {"EndsTensorList", {rows}}},
        {{"axes", Ints{0}}, {"starts", Ints{-1}}, {"ends", Ints{-1}}});
    // A number of the chain that is data as well.
    return layers::ElementwiseDiv(y, layers::Cast(rows, DType::kFloat32));
  });
}

TEST_F(ComputedShapes, AreKnownInLoops) {
  ExpectSameTraining({{"x", Counted({4, 6})}}, [](bool by_tensor) {
    const Variable x = layers::Fc(layers::Data("x", {-1, 6}) * 0.1f, 6, {.act = "tanh"});
    const Variable rows = RowsOf(x);
    const Variable i = layers::FillConstant({1}, DType::kInt64, 0);
    const Variable limit = layers::FillConstant({1}, DType::kInt64, 3);
    const Variable sum = layers::ReduceSum(x) * 0.0f;
    const Variable goes_on = layers::LessThan(i, limit);
    layers::While(goes_on).Body([&] {
      // One number from outside, and one of the body's own.
      const Variable three = Part(layers::ShapeOf(layers::Reshape(x, {-1, 3})), 1, 2);
      const Variable y = by_tensor ? Reshaped(layers::Tanh(x), {rows, Number(2), three})
                                   : layers::Reshape(layers::Tanh(x), {-1, 2, 3});
      layers::AssignTo(sum + layers::ReduceSum(y * y), sum);
      layers::AssignTo(layers::LessThan(layers::Increment(i), limit), goes_on);
    });
    return sum;
  });
}

// The rows of a step are those of the sequences that go on.
TEST_F(ComputedShapes, AreThoseOfTheRowsOfAnIteration) {
  ExpectSameTraining({{"x", RaggedRows({{3, 1, 2}}, 4, 0.1f, 0.05f)}}, [](bool by_tensor) {
    const Variable x = layers::Data("x", {-1, 4}, DType::kFloat32, {.lod_level = 1});
    layers::DynamicRnn rnn;
    rnn.Body([&] {
      const Variable step = rnn.StepInput(x);
      const Variable before = rnn.Memory({4}, 0.0f);
      const Variable now = layers::Tanh(layers::Fc(step + before, 4));
      const Variable y = by_tensor ? Reshaped(now, {RowsOf(step), Number(2), Number(2)})
                                   : layers::Reshape(now, {-1, 2, 2});
      // An op that needs at least a row, so that the rules are asked in each iteration.
      const Variable first = Make(
          "slice", {{"Input", {now}}},
          {{"axes", Ints{0}}, {"starts", Ints{0}}, {"ends", Ints{1}}, {"decrease_axis", Ints{0}}});
      const Variable after = layers::Reshape(layers::Transpose(y, {0, 2, 1}), {-1, 4}) + first;
      rnn.UpdateMemory(before, after);
      rnn.StepOutput(after);
    });
    return rnn.Outputs()[0];
  });
}

TEST_F(ComputedShapes, NameTheDataOnWhichTheyDepend) {
  const Variable x = layers::Data("x", {2, 3});
  const Variable fed = layers::Data("fed", {1}, DType::kInt32);
  const Variable sum = Make("elementwise_add", {{"X", {fed}}, {"Y", {Number(1)}}});
  const Variable y = Reshaped(x, {sum, Number(-1)});
  const std::string given = StrCat("reshape2: input \"ShapeTensor\", variable \"", sum.name(),
                                   "\", gives the attribute \"shape\" and depends on ");
  const std::string expected = ": expected numbers that follow from shapes and constants";
  EXPECT_THAT(VerifyProgram(DefaultOpRegistry(), main_),
              ElementsAre(HasSubstr(given + "data" + expected)));
  const FeedList feeds = {{"x", Counted({2, 3})}, {"fed", Tensor::FromValues<int32_t>({1}, {1})}};
  EXPECT_THAT(
      ErrorText(ErrorCode::kUnimplemented, [&] { executor_.Run(main_, feeds, {y.name()}); }),
      HasSubstr(given + "feed \"fed\"" + expected));
}

TEST_F(ComputedShapes, NameTheOpOnWhichTheyDepend) {
  const Variable drawn = Make("randint", {},
                              {{"shape", std::vector<int64_t>{1}},
                               {"low", 1},
                               {"high", 2},
                               {"dtype", static_cast<int32_t>(DType::kInt32)}});
  const Variable x = layers::Data("x", {2, 3});
  const Variable y = Reshaped(x, {drawn, Number(-1)});
  EXPECT_THAT(ErrorText([&] {
                executor_.Run(main_, {{"x", Counted({2, 3})}}, {y.name()});
              }),
              HasSubstr("depends on what randint (block 0, op #0"));
}

// Of constants only a few elements are known, and nothing that follows from LoDs.
TEST_F(ComputedShapes, AreRefusedByVerifyWhereARunRefusesThem) {
  const auto first_of = [](int64_t count) {
    return Part(layers::FillConstant({count}, DType::kInt32, 2), 0, 1);
  };
  const auto first_expanded = [](const Variable& ragged) {
    const Variable two = layers::FillConstant({1, 1}, DType::kInt32, 2);
    return Part(Make("sequence_expand", {{"X", {two}}, {"Y", {ragged}}}), 0, 1);
  };
  const std::vector<std::pair<std::string, std::function<Variable(const Variable&)>>> cases = {
      {"", [&](const Variable&) { return first_of(4096); }},
      {"slice", [&](const Variable&) { return first_of(4097); }},
      {"sequence_expand", first_expanded}};
  for (const auto& [refused, make] : cases) {
    Program main, startup;
    const ProgramGuard guard(&main, &startup);
    const Variable x = layers::Data("x", {6});
    const Variable ragged = layers::Data("ragged", {-1, 1}, DType::kFloat32, {.lod_level = 1});
    const Variable y = Reshaped(x, {make(ragged), Number(3)});
    const FeedList feeds = {{"x", Counted({6})}, {"ragged", RaggedRows({{2}}, 1)}};
    if (refused.empty()) {
      EXPECT_THAT(VerifyProgram(DefaultOpRegistry(), main), IsEmpty());
      EXPECT_EQ(executor_.Run(main, feeds, {y.name()})[0].shape(), Shape({2, 3}));
      continue;
    }
    const std::string expected = "gives the attribute \"shape\" and depends on ";
    EXPECT_THAT(VerifyProgram(DefaultOpRegistry(), main),
                ElementsAre(HasSubstr(expected + "data")));
    EXPECT_THAT(
        ErrorText(ErrorCode::kUnimplemented, [&] { executor_.Run(main, feeds, {y.name()}); }),
        HasSubstr(expected + "what " + refused));
  }
}

// PaddlePaddle writes into the attribute what it knows of the numbers. A run takes the tensors'.
TEST_F(ComputedShapes, CountInPlaceOfTheAttribute) {
  const auto program = ParseProgramText(R"(program { block 0 {
    var x float32 [2, 3]
    var w float32 [3, 2]
    var two int32 [1]
    var three int32 [1]
    var y float32 [3, 2]
    var z float32 [3, 2]
    {Out: [two]} = fill_constant() {shape = longs [1], dtype = 2, value = 2.0}
    {Out: [three]} = fill_constant() {shape = longs [1], dtype = 2, value = 3.0}
    {Out: [y]} = reshape2(X: [x], ShapeTensor: [three, two]) {shape = ints [2, 3]}
    {Out: [z]} = elementwise_add(X: [y], Y: [w])
  } })");
  EXPECT_THAT(VerifyProgram(DefaultOpRegistry(), *program, {.feeds = {"x", "w"}}), IsEmpty());
  const FeedList feeds = {{"x", Counted({2, 3})}, {"w", Counted({3, 2})}};
  EXPECT_THAT(executor_.Run(*program, feeds, {"z"})[0].ToVector<float>(),
              ElementsAre(0, 2, 4, 6, 8, 10));
}

// Files have @EMPTY@ where an input isn't connected.
TEST_F(ComputedShapes, LeaveTheAttributeToASlotThatIsEmpty) {
  const auto program = ParseProgramText(R"(program { block 0 {
    var x float32 [2, 3]
    var y float32 [3, 2]
    {Out: [y]} = reshape2(X: [x], Shape: ["@EMPTY@"]) {shape = ints [3, 2]}
  } })");
  EXPECT_THAT(VerifyProgram(DefaultOpRegistry(), *program, {.feeds = {"x"}}), IsEmpty());
  EXPECT_EQ(executor_.Run(*program, {{"x", Counted({2, 3})}}, {"y"})[0].shape(), Shape({3, 2}));
}

TEST_F(ComputedShapes, AreIntegers) {
  const Variable x = layers::Data("x", {2, 3});
  const Variable floats = layers::FillConstant({2}, DType::kFloat32, 1);
  EXPECT_THAT(InvalidArgumentText([&] { layers::ReshapeTo(x, floats); }),
              HasSubstr("input \"Shape\", which gives the attribute \"shape\", is float32 [2], "
                        "expected int32 or int64"));
  EXPECT_THAT(
      InvalidArgumentText([&] { Reshaped(x, {layers::FillConstant({2}, DType::kInt32, 1)}); }),
      HasSubstr("is int32 [2], expected one number of int32 or int64"));
}

}  // namespace
}  // namespace skiff
