// Loops, scans and branches of ONNX as programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "framework/builder/math.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/ir/program.h"
#include "tests/framework/onnx/imported_model.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointwise;

std::vector<Tensor> RunModel(const ModelBuilder& builder, const FeedList& feeds) {
  Executor exe;
  const InferenceModel model = Imported(builder, &exe);
  return exe.Compile(*model.program).Run(feeds, model.fetch_names);
}

// Returns a parameter after one step of SGD with a rate of 1 on the sum of an output.
std::vector<float> Trained(const ModelBuilder& builder, const FeedList& feeds,
                           const std::string& output, const std::string& parameter) {
  Executor exe;
  const InferenceModel model = Imported(builder, &exe);
  Program startup;
  {
    const ProgramGuard guard(model.program.get(), &startup);
    const Variable loss = layers::ReduceSum(Variable(model.program->root(), output));
    optimizer::Sgd({.learning_rate = 1.0}).Minimize(loss);
  }
  exe.Run(startup);
  exe.Compile(*model.program).Run(feeds, {output});
  return exe.scope().Get(parameter).ToVector<float>();
}

Tensor Number(int64_t value) { return Tensor::FromValues<int64_t>({}, {value}); }
Tensor Flag(bool value) { return Tensor::FromValues<bool>({}, {value}); }

// state · w + x in each iteration, for as long as `condition`, a node of the body, says.
struct LoopModel {
  ModelBuilder builder;

  // `trip_count` and `go_on` name inputs of the node.
  LoopModel(const std::string& trip_count, const std::string& go_on,
            const std::vector<std::string>& outputs) {
    builder.Input("x", {2});
    builder.Floats("w", {2}, {2, 3});
    builder.Floats("s0", {2}, {1, 1});
    onnx::NodeProto* node = builder.Node("Loop", {trip_count, go_on, "s0"}, outputs);
    GraphEditor body = AddGraph("body", node);
    body.Inputs({"i", "c", "s"});
    body.Node("Mul", {"s", "w"}, {"p"});
    body.Node("Add", {"p", "x"}, {"next"});
    body.Node("Neg", {"next"}, {"made"});
    body.Outputs({"go_on", "next"});
    if (outputs.size() > 1) body.Outputs({"made"});
  }

  GraphEditor body() {
    return GraphEditor(builder.graph().mutable_node(0)->mutable_attribute(0)->mutable_g());
  }
};

LoopModel CountedLoop(const std::string& trip_count, const std::vector<std::string>& outputs) {
  LoopModel loop(trip_count, "", outputs);
  loop.body().Node("Identity", {"c"}, {"go_on"});
  loop.builder.Output(outputs[0], {2});
  if (outputs.size() > 1) loop.builder.Output(outputs[1], {-1, 2});
  return loop;
}

Tensor Xs() { return Tensor::FromValues<float>({2}, {1, -1}); }

TEST(ImportOnnxLoop, RunsAsOftenAsAConstantSays) {
  LoopModel loop = CountedLoop("count", {"last", "all"});
  loop.builder.edit().Int("count", 3);
  const auto results = RunModel(loop.builder, {{"x", Xs()}});
  EXPECT_THAT(results[0].ToVector<float>(), ElementsAre(15, 14));
  EXPECT_EQ(results[1].shape(), Shape({3, 2}));
  EXPECT_THAT(results[1].ToVector<float>(), ElementsAre(-3, -2, -7, -5, -15, -14));
}

TEST(ImportOnnxLoop, HasTheNamesOfTheFileInItsBody) {
  LoopModel loop = CountedLoop("count", {"last", "all"});
  loop.builder.edit().Int("count", 3);
  Executor exe;
  const InferenceModel model = Imported(loop.builder, &exe);
  EXPECT_THAT(model.program->root()->GetVar("all")->dims, ElementsAre(3, 2));
  EXPECT_THAT(model.program->block(1)->GetVar("all")->dims, ElementsAre(2));
}

TEST(ImportOnnxLoop, RunsAsOftenAsDataSay) {
  for (const bool makes_outputs : {true, false}) {
    LoopModel loop =
        makes_outputs ? CountedLoop("count", {"last", "all"}) : CountedLoop("count", {"last"});
    loop.builder.Input("count", {}, onnx::TensorProto::INT64);
    Executor exe;
    const InferenceModel model = Imported(loop.builder, &exe);
    CompiledProgram program = exe.Compile(*model.program);
    for (const auto& [count, last] : {std::pair<int64_t, float>{1, 3}, {3, 15}, {0, 1}}) {
      const auto results = program.Run({{"x", Xs()}, {"count", Number(count)}}, model.fetch_names);
      EXPECT_EQ(results[0].values<float>()[0], last) << count;
      if (makes_outputs) {
        EXPECT_EQ(results[1].shape(), Shape({count, 2}));
      }
    }
  }
}

TEST(ImportOnnxLoop, MayHaveNoIteration) {
  LoopModel loop = CountedLoop("count", {"last", "all"});
  loop.builder.edit().Int("count", 0);
  const auto results = RunModel(loop.builder, {{"x", Xs()}});
  EXPECT_THAT(results[0].ToVector<float>(), ElementsAre(1, 1));
  EXPECT_EQ(results[1].shape(), Shape({0, 2}));
}

TEST(ImportOnnxLoop, EndsWhenItsConditionSays) {
  for (const bool is_bounded : {true, false}) {
    LoopModel loop(is_bounded ? "count" : "", "begins", {"last", "all"});
    loop.builder.edit().Int("count", 4);
    loop.builder.Input("begins", {}, onnx::TensorProto::BOOL);
    loop.builder.Input("limit", {});
    GraphEditor body = loop.body();
    SetInt("keepdims", 0, body.Node("ReduceSum", {"next"}, {"sum"}));
    body.Node("Less", {"sum", "limit"}, {"go_on"});
    loop.builder.Output("last", {2});
    loop.builder.Output("all", {-1, 2});
    Executor exe;
    const InferenceModel model = Imported(loop.builder, &exe);
    CompiledProgram program = exe.Compile(*model.program);
    const auto run = [&](float limit) {
      const Tensor value = Tensor::FromValues<float>({}, {limit});
      return program.Run({{"x", Xs()}, {"begins", Flag(true)}, {"limit", value}},
                         model.fetch_names);
    };
    EXPECT_EQ(run(5)[1].shape(), Shape({1, 2}));
    EXPECT_THAT(run(13)[0].ToVector<float>(), ElementsAre(15, 14));
    EXPECT_EQ(run(1000)[1].shape(), Shape({is_bounded ? 4 : 7, 2}));
  }
}

TEST(ImportOnnxLoop, DoesNotBeginIfItsConditionIsFalse) {
  LoopModel loop("", "begins", {"last"});
  loop.builder.Input("begins", {1}, onnx::TensorProto::BOOL);
  loop.body().Bool("go_on", false);
  loop.builder.Output("last", {2});
  const auto last = [&](bool begins) {
    const Tensor flag = Tensor::FromValues<bool>({1}, {begins});
    return RunModel(loop.builder, {{"x", Xs()}, {"begins", flag}})[0].values<float>()[0];
  };
  EXPECT_EQ(last(false), 1);
  EXPECT_EQ(last(true), 3);
}

TEST(ImportOnnxLoop, NamesWhatItCannotMakeWithoutAnIteration) {
  LoopModel loop("", "begins", {"last", "all"});
  loop.builder.Input("begins", {}, onnx::TensorProto::BOOL);
  loop.body().Bool("go_on", false);
  loop.builder.Output("last", {2});
  loop.builder.Output("all", {-1, 2});
  const auto run = [&](bool begins) {
    return RunModel(loop.builder, {{"x", Xs()}, {"begins", Flag(begins)}});
  };
  EXPECT_EQ(run(true)[1].shape(), Shape({1, 2}));
  EXPECT_THAT(ErrorText(ErrorCode::kOutOfRange, [&] { run(false); }),
              HasSubstr("X has no elements to make \"all\" of"));
}

// The last state is w³ + (w² + w + 1) x; the iterations make - w - x and so on.
TEST(ImportOnnxLoop, Trains) {
  const FeedList feeds = {{"x", Xs()}};
  LoopModel state = CountedLoop("count", {"last"});
  state.builder.edit().Int("count", 3);
  EXPECT_THAT(Trained(state.builder, feeds, "last", "w"),
              Pointwise(FloatNear(1e-4f), {2.0f - (12 + 5), 3.0f - (27 - 7)}));
  EXPECT_THAT(Trained(state.builder, feeds, "last", "s0"),
              Pointwise(FloatNear(1e-4f), {1.0f - 8, 1.0f - 27}));
  LoopModel made = CountedLoop("count", {"last", "all"});
  made.builder.edit().Int("count", 3);
  EXPECT_THAT(Trained(made.builder, feeds, "all", "w"),
              Pointwise(FloatNear(1e-4f), {2.0f + (1 + 5 + 17), 3.0f + (1 + (6 - 1) + (27 - 7))}));
}

// As PyTorch writes a loop over numbers.
TEST(ImportOnnxLoop, KnowsAConditionThatStaysTrue) {
  for (const std::string from : {"c", "truth", "constant"}) {
    LoopModel loop("count", "truth", {"last", "all"});
    loop.builder.edit().Int("count", 3);
    loop.builder.edit().Bool("truth", true);
    if (from == "constant") {
      onnx::NodeProto* node = loop.body().Node("Constant", {}, {"constant"});
      onnx::AttributeProto* value = node->add_attribute();
      value->set_name("value");
      value->set_type(onnx::AttributeProto::TENSOR);
      value->mutable_t()->set_data_type(onnx::TensorProto::BOOL);
      value->mutable_t()->set_raw_data(std::string(1, '\1'));
    }
    loop.body().Node("Identity", {from}, {"go_on"});
    loop.builder.Output("last", {2});
    loop.builder.Output("all", {3, 2});
    Executor exe;
    const InferenceModel model = Imported(loop.builder, &exe);
    const auto& ops = model.program->root()->ops();
    EXPECT_TRUE(std::ranges::any_of(ops, [](const auto& op) { return op->type == "recurrent"; }))
        << from << " isn't known to stay true";
  }
}

// A function of the file that is called as an op of ONNX, and negates the condition.
LoopModel LoopThatEndsAtOnce(const std::string& domain) {
  LoopModel loop("count", "", {"last", "all"});
  loop.builder.edit().Int("count", 3);
  loop.body().Node("Identity", {"c"}, {"go_on"})->set_domain(domain);
  onnx::FunctionProto* function = loop.builder.model.add_functions();
  function->set_name("Identity");
  function->set_domain(domain);
  function->add_input("a");
  function->add_output("b");
  function->add_opset_import()->set_version(17);
  onnx::NodeProto* node = function->add_node();
  node->set_op_type("Not");
  node->add_input("a");
  node->add_output("b");
  loop.builder.Output("last", {2});
  loop.builder.Output("all", {-1, 2});
  return loop;
}

TEST(ImportOnnxLoop, TakesNoFunctionForAnOp) {
  const auto results = RunModel(LoopThatEndsAtOnce("my").builder, {{"x", Xs()}});
  EXPECT_THAT(results[0].ToVector<float>(), ElementsAre(3, 2));
  EXPECT_EQ(results[1].shape(), Shape({1, 2}));
  EXPECT_THAT(Refusal(ErrorCode::kUnimplemented, LoopThatEndsAtOnce("").builder),
              HasSubstr("isn't known to be true"));
}

TEST(ImportOnnxLoop, TrainsIfItsConditionDependsOnData) {
  LoopModel loop("", "truth", {"last", "all"});
  loop.builder.edit().Bool("truth", true);
  loop.builder.Floats("limit", {1}, {13});
  SetInt("keepdims", 0, loop.body().Node("ReduceSum", {"next"}, {"sum"}));
  loop.body().Node("Less", {"sum", "limit"}, {"go_on"});
  loop.builder.Output("last", {2});
  loop.builder.Output("all", {-1, 2});
  EXPECT_THAT(Trained(loop.builder, {{"x", Xs()}}, "all", "s0"),
              Pointwise(FloatNear(1e-4f), {1.0f + (2 + 4 + 8), 1.0f + (3 + 9 + 27)}));
  EXPECT_THAT(Trained(loop.builder, {{"x", Xs()}}, "last", "s0"),
              Pointwise(FloatNear(1e-4f), {1.0f - 8, 1.0f - 27}));
}

// The outer loop counts to 3; the inner one adds its own number and the outer one to the state.
TEST(ImportOnnxLoop, NestsLoopsAndBranches) {
  ModelBuilder builder;
  builder.Input("x", {1});
  builder.edit().Int("three", 3);
  builder.edit().Int("two", 2);
  GraphEditor outer = AddGraph("body", builder.Node("Loop", {"three", "", "x"}, {"y", "all"}));
  outer.Inputs({"i", "c", "s"});
  outer.Node("Identity", {"c"}, {"go_on"});
  GraphEditor inner = AddGraph("body", outer.Node("Loop", {"two", "", "s"}, {"next", "made"}));
  inner.Inputs({"j", "d", "t"});
  inner.Node("Identity", {"d"}, {"goes_on"});
  inner.Node("Add", {"i", "j"}, {"sum"});
  SetInt("to", onnx::TensorProto::FLOAT, inner.Node("Cast", {"sum"}, {"number"}));
  inner.Node("Mod", {"sum", "two"}, {"rest"});
  SetInt("to", onnx::TensorProto::BOOL, inner.Node("Cast", {"rest"}, {"is_odd"}));
  onnx::NodeProto* branch = inner.Node("If", {"is_odd"}, {"added"});
  GraphEditor odd = AddGraph("then_branch", branch);
  odd.Node("Add", {"t", "number"}, {"sum_if_odd"});
  odd.Outputs({"sum_if_odd"});
  GraphEditor even = AddGraph("else_branch", branch);
  even.Node("Sub", {"t", "number"}, {"sum_if_even"});
  even.Outputs({"sum_if_even"});
  inner.Outputs({"goes_on", "added", "added"});
  outer.Outputs({"go_on", "next", "made"});
  builder.Output("y", {1});
  builder.Output("all", {3, 2, 1});
  const auto results = RunModel(builder, {{"x", Tensor::FromValues<float>({1}, {10})}});
  // 10 - 0 + 1, + 1 - 2, - 2 + 3
  EXPECT_THAT(results[0].ToVector<float>(), ElementsAre(11));
  EXPECT_THAT(results[1].ToVector<float>(), ElementsAre(10, 11, 12, 10, 8, 11));
}

// As exporters write `for i in range(x.shape[0]): s = s + x[i]`.
TEST(ImportOnnxLoop, RunsForEachRow) {
  ModelBuilder builder;
  builder.Input("x", {-1, 2});
  builder.Floats("s0", {2}, {0, 0});
  builder.edit().Int("zero", 0);
  builder.Node("Shape", {"x"}, {"dims"});
  builder.Node("Gather", {"dims", "zero"}, {"rows"});
  GraphEditor body = AddGraph("body", builder.Node("Loop", {"rows", "", "s0"}, {"last", "all"}));
  body.Inputs({"i", "c", "s"});
  body.Node("Identity", {"c"}, {"go_on"});
  body.Node("Gather", {"x", "i"}, {"row"});
  body.Node("Add", {"s", "row"}, {"next"});
  body.Outputs({"go_on", "next", "next"});
  builder.Output("last", {2});
  builder.Output("all", {-1, 2});
  const Tensor x = Tensor::FromValues<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto results = RunModel(builder, {{"x", x}});
  EXPECT_THAT(results[0].ToVector<float>(), ElementsAre(9, 12));
  EXPECT_THAT(results[1].ToVector<float>(), ElementsAre(1, 2, 4, 6, 9, 12));
}

TEST(ImportOnnxLoop, CutsWhatMovesWithTheIteration) {
  ModelBuilder builder;
  builder.Input("x", {2, 4});
  builder.edit().Int("count", 3);
  builder.edit().Int("two", 2);
  builder.Ints("axis", {0});
  builder.Ints("one", {1});
  GraphEditor body = AddGraph("body", builder.Node("Loop", {"count", ""}, {"y"}));
  body.Inputs({"i", "c"});
  body.Node("Identity", {"c"}, {"go_on"});
  body.Node("Unsqueeze", {"i", "axis"}, {"begin"});
  body.Node("Add", {"i", "two"}, {"after"});
  body.Node("Unsqueeze", {"after", "axis"}, {"end"});
  body.Node("Slice", {"x", "begin", "end", "one"}, {"part"});
  body.Outputs({"go_on", "part"});
  builder.Output("y", {3, 2, 2});
  const Tensor x = Tensor::FromValues<float>({2, 4}, {0, 1, 2, 3, 10, 11, 12, 13});
  EXPECT_THAT(RunModel(builder, {{"x", x}})[0].ToVector<float>(),
              ElementsAre(0, 1, 10, 11, 1, 2, 11, 12, 2, 3, 12, 13));
}

TEST(ImportOnnxLoop, RefusesWhatLoopsDoNotHave) {
  LoopModel growing("count", "", {"last"});
  growing.builder.edit().Int("count", 3);
  growing.body().Node("Identity", {"c"}, {"go_on"});
  SetInt("axis", 0, growing.body().Node("Concat", {"s", "x"}, {"longer"}));
  growing.builder.graph()
      .mutable_node(0)
      ->mutable_attribute(0)
      ->mutable_g()
      ->mutable_output(1)
      ->set_name("longer");
  growing.builder.Output("last", {-1});
  EXPECT_THAT(Refusal(ErrorCode::kUnimplemented, growing.builder),
              HasSubstr("state 0 is float32 [2] before an iteration and float32 [4] after it"));
  LoopModel spoilt = CountedLoop("count", {"last", "all"});
  spoilt.builder.edit().Int("count", 3);
  spoilt.body().Node("StringNormalizer", {"s"}, {"unused"});
  const std::string text = Refusal(ErrorCode::kUnimplemented, spoilt.builder);
  EXPECT_THAT(text, HasSubstr("1 part of the model"));
  EXPECT_THAT(text, HasSubstr("StringNormalizer_of_unused"));
  EXPECT_THAT(text, Not(HasSubstr("Loop_of_last")));
}

TEST(ImportOnnxLoop, RefusesNodesThatAreNone) {
  LoopModel loop = CountedLoop("count", {"last"});
  loop.builder.edit().Int("count", 3);
  LoopModel outputs = loop;
  outputs.builder.graph().mutable_node(0)->add_output("another");
  EXPECT_THAT(Refusal(ErrorCode::kInvalidArgument, outputs.builder), HasSubstr("2 outputs"));
  LoopModel inputs = loop;
  inputs.body().Inputs({"one_too_many"});
  EXPECT_THAT(Refusal(ErrorCode::kInvalidArgument, inputs.builder), HasSubstr("4 inputs"));
  LoopModel none = loop;
  none.builder.graph().mutable_node(0)->clear_attribute();
  EXPECT_THAT(Refusal(ErrorCode::kInvalidArgument, none.builder), HasSubstr("no graph \"body\""));
  LoopModel dtype = loop;
  dtype.builder.edit().Bool("flags", true)->add_dims(2);
  dtype.builder.graph().mutable_node(0)->set_input(1, "flags");
  Refusal(ErrorCode::kDataLoss, dtype.builder);
}

// Runs over columns of `x` and rows of `y` backwards; makes columns.
ModelBuilder ScanModel() {
  ModelBuilder builder;
  builder.Input("x", {2, -1});
  builder.Input("y", {-1, 2});
  builder.Floats("s0", {2}, {0, 100});
  onnx::NodeProto* node = builder.Node("Scan", {"s0", "x", "y"}, {"last", "all"});
  SetInt("num_scan_inputs", 2, node);
  SetInts("scan_input_axes", {1, -2}, node);
  SetInts("scan_input_directions", {0, 1}, node);
  SetInts("scan_output_axes", {-1}, node);
  SetInts("scan_output_directions", {1}, node);
  GraphEditor body = AddGraph("body", node);
  body.Inputs({"s", "a", "b"});
  body.Node("Add", {"s", "a"}, {"sum"});
  body.Node("Sub", {"sum", "b"}, {"next"});
  body.Outputs({"next", "sum"});
  builder.Output("last", {2});
  builder.Output("all", {2, -1});
  return builder;
}

TEST(ImportOnnxScan, TakesAxesAndDirections) {
  const auto results =
      RunModel(ScanModel(), {{"x", Tensor::FromValues<float>({2, 3}, {1, 2, 3, 10, 20, 30})},
                             {"y", Tensor::FromValues<float>({3, 2}, {4, 5, 6, 7, 8, 9})}});
  // From 0: + 1, - 8, + 2, - 6, + 3, - 4; from 100: + 10, - 9, + 20, - 7, + 30, - 5.
  EXPECT_THAT(results[0].ToVector<float>(), ElementsAre(-12, 139));
  EXPECT_THAT(results[1].ToVector<float>(), ElementsAre(-8, -5, 1, 144, 121, 110));
}

TEST(ImportOnnxScan, RunsForEachSampleBeforeOpset9) {
  ModelBuilder builder;
  builder.model.mutable_opset_import(0)->set_version(8);
  builder.Input("s0", {2, 1});
  builder.Input("x", {2, 3, 1});
  onnx::NodeProto* node = builder.Node("Scan", {"", "s0", "x"}, {"last", "all"});
  SetInt("num_scan_inputs", 1, node);
  SetInts("directions", {1}, node);
  GraphEditor body = AddGraph("body", node);
  body.Inputs({"s", "a"});
  body.Node("Add", {"s", "a"}, {"sum"});
  body.Node("Neg", {"sum"}, {"made"});
  body.Outputs({"sum", "made"});
  builder.Output("last", {2, 1});
  builder.Output("all", {2, 3, 1});
  const auto results =
      RunModel(builder, {{"s0", Tensor::FromValues<float>({2, 1}, {0, 100})},
                         {"x", Tensor::FromValues<float>({2, 3, 1}, {1, 2, 3, 10, 20, 30})}});
  EXPECT_THAT(results[0].ToVector<float>(), ElementsAre(6, 160));
  EXPECT_THAT(results[1].ToVector<float>(), ElementsAre(-3, -5, -6, -130, -150, -160));
}

TEST(ImportOnnxScan, RefusesListsOfOtherLengths) {
  ModelBuilder builder = ScanModel();
  SetInts("scan_input_axes", {1}, builder.graph().mutable_node(0));
  auto* attributes = builder.graph().mutable_node(0)->mutable_attribute();
  attributes->SwapElements(1, attributes->size() - 1);
  EXPECT_THAT(Refusal(ErrorCode::kInvalidArgument, builder),
              HasSubstr("scan_input_axes has 1 entries, expected 2"));
}

// x · w if the condition holds, else -x.
ModelBuilder BranchModel() {
  ModelBuilder builder;
  builder.Input("x", {2});
  builder.Input("condition", {}, onnx::TensorProto::BOOL);
  builder.Floats("w", {2}, {2, 3});
  onnx::NodeProto* node = builder.Node("If", {"condition"}, {"y", "number"});
  GraphEditor first = AddGraph("then_branch", node);
  first.Node("Mul", {"x", "w"}, {"product"});
  first.Int("one", 1);
  first.Outputs({"product", "one"});
  GraphEditor second = AddGraph("else_branch", node);
  second.Node("Neg", {"x"}, {"negative"});
  second.Int("two", 2);
  second.Outputs({"negative", "two"});
  builder.Output("y", {2});
  builder.Output("number", {}, onnx::TensorProto::INT64);
  return builder;
}

TEST(ImportOnnxIf, TakesTheBranchThatDataChoose) {
  const auto run = [&](bool condition) {
    return RunModel(BranchModel(), {{"x", Xs()}, {"condition", Flag(condition)}});
  };
  EXPECT_THAT(run(true)[0].ToVector<float>(), ElementsAre(2, -3));
  EXPECT_THAT(run(false)[0].ToVector<float>(), ElementsAre(-1, 1));
  EXPECT_EQ(run(true)[1].Item<int64_t>(), 1);
  EXPECT_EQ(run(false)[1].Item<int64_t>(), 2);
}

TEST(ImportOnnxIf, Trains) {
  const auto trained = [&](bool condition) {
    return Trained(BranchModel(), {{"x", Xs()}, {"condition", Flag(condition)}}, "y", "w");
  };
  EXPECT_THAT(trained(true), ElementsAre(1, 4));
  EXPECT_THAT(trained(false), ElementsAre(2, 3));
}

TEST(ImportOnnxIf, RefusesBranchesOfDifferentShapes) {
  ModelBuilder builder = BranchModel();
  onnx::GraphProto* second = builder.graph().mutable_node(0)->mutable_attribute(1)->mutable_g();
  second->mutable_node(0)->set_op_type("ReduceSum");
  EXPECT_THAT(Refusal(ErrorCode::kUnimplemented, builder),
              HasSubstr("output 0 is float32 [2] of one branch and float32 [1] of the other"));
}

// x[start:end] in one branch, where bounds are values of the graph around it.
ModelBuilder SlicingBranch(const std::vector<int64_t>& bound_dims) {
  ModelBuilder builder;
  builder.Input("x", {4});
  builder.Input("condition", {}, onnx::TensorProto::BOOL);
  builder.Input("start", bound_dims, onnx::TensorProto::INT64);
  builder.Input("end", bound_dims, onnx::TensorProto::INT64);
  onnx::NodeProto* node = builder.Node("If", {"condition"}, {"y"});
  GraphEditor first = AddGraph("then_branch", node);
  first.Node("Slice", {"x", "start", "end"}, {"part"});
  first.Outputs({"part"});
  GraphEditor second = AddGraph("else_branch", node);
  second.Node("Neg", {"x"}, {"negative"});
  second.Node("Slice", {"negative", "start", "end"}, {"negative_part"});
  second.Outputs({"negative_part"});
  builder.Output("y", {-1});
  return builder;
}

TEST(ImportOnnxIf, SaysWhichBoundsOfASliceAreExpected) {
  EXPECT_THAT(Refusal(ErrorCode::kUnimplemented, SlicingBranch({-1})),
              HasSubstr("its starts are of shape [-1], expected a vector of known length"));
  EXPECT_THAT(Refusal(ErrorCode::kUnimplemented, SlicingBranch({})),
              HasSubstr("its starts are of shape [], expected a vector of known length"));
  const ModelBuilder builder = SlicingBranch({1});
  const FeedList feeds = {{"x", Tensor::FromValues<float>({4}, {1, 2, 3, 4})},
                          {"condition", Flag(true)},
                          {"start", Tensor::FromValues<int64_t>({1}, {1})},
                          {"end", Tensor::FromValues<int64_t>({1}, {3})}};
  try {
    RunModel(builder, feeds);
    ADD_FAILURE() << "bounds from a feed are taken";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("input \"StartsTensor\", variable \"start\", gives the "
                                        "attribute \"starts\" and depends on feed \"start\": "
                                        "expected numbers that follow from shapes and constants"));
  }
}

// The names of the file are those that the variables of the body would have.
TEST(ImportOnnxLoop, KeepsNamesOfTheFileApart) {
  for (const std::string taken : {"elementwise_mul_0.tmp_0", "elementwise_add_0.tmp_0"}) {
    LoopModel loop = CountedLoop("count", {"last"});
    loop.builder.edit().Int("count", 2);
    loop.builder.Node("Neg", {"x"}, {taken});
    loop.body().Node("Add", {"next", taken}, {"without_x"});
    loop.builder.graph()
        .mutable_node(0)
        ->mutable_attribute(0)
        ->mutable_g()
        ->mutable_output(1)
        ->set_name("without_x");
    EXPECT_THAT(RunModel(loop.builder, {{"x", Xs()}})[0].ToVector<float>(), ElementsAre(4, 9));
  }
}

}  // namespace
}  // namespace skiff
