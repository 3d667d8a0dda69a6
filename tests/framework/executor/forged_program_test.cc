// Programs that claim what isn't so. A file may call any variable a gradient, a rank table or the
// rows that a mask chooses; kernels that relied on it would leave their buffers. Each of these is
// an Error instead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/analysis/verifier.h"
#include "framework/base/str_cat.h"
#include "framework/executor/executor.h"
#include "framework/ir/text.h"
#include "framework/op/registry.h"
#include "tests/harness/error_text.h"
#include "tests/harness/forged_programs.h"

namespace skiff {
namespace {

using harness::BlockGrad;
using harness::JoinGrad;
using harness::MadeRows;
using harness::RecurrentGrad;
using harness::ShrinkGrad;
using harness::WithStep;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<Tensor> RunText(const std::string& text, const FetchList& fetches,
                            const FeedList& feeds = {}) {
  Executor executor(Place::Cpu());
  return executor.Run(*ParseProgramText(text), feeds, fetches);
}

// That of two runs: what the first one leaves in the plan is there in the second.
std::string ErrorOf(const std::string& text, const std::string& fetch, const FeedList& feeds = {}) {
  Executor executor(Place::Cpu());
  CompiledProgram program = executor.Compile(*ParseProgramText(text));
  const auto run = [&] { return InvalidArgumentText([&] { program.Run(feeds, {fetch}); }); };
  const std::string first = run();
  EXPECT_EQ(run(), first);
  return first;
}

std::vector<std::string> Problems(const std::string& text) {
  return VerifyProgram(DefaultOpRegistry(), *ParseProgramText(text));
}

// ---- gradients of another shape

TEST(ForgedGradient, OfAMemoryThatHasFewerRows) {
  EXPECT_EQ(RunText(ShrinkGrad("[1, 2]"), {"xg"})[0].ToVector<float>(), std::vector<float>({7, 7}));
  EXPECT_THAT(ErrorOf(ShrinkGrad("[4000, 2]"), "xg"),
              HasSubstr("Out@GRAD has 4000 rows, expected the 1 of X or fewer"));
  EXPECT_THAT(ErrorOf(ShrinkGrad("[1, 3]"), "xg"),
              HasSubstr("Out@GRAD is float32 [1, 3], expected float32 [-1, 2]"));
  EXPECT_THAT(Problems(ShrinkGrad("[1, 3]")), ElementsAre(HasSubstr("expected float32 [-1, 2]")));
}

TEST(ForgedGradient, OfJoinedElements) {
  EXPECT_EQ(RunText(JoinGrad("[1, 3, 1]"), {"r"})[0].ToVector<float>(),
            std::vector<float>({7, 7, 7}));
  EXPECT_THAT(ErrorOf(JoinGrad("[3]"), "r"),
              HasSubstr("Out@GRAD is float32 [3], expected float32"));
  EXPECT_THAT(Problems(JoinGrad("[3]")), ElementsAre(HasSubstr("Out@GRAD is float32 [3]")));
  EXPECT_THAT(ErrorOf(JoinGrad("[1, 2, 1]"), "r"),
              HasSubstr("Out@GRAD has the shape [1, 2, 1], expected that of the joined elements of "
                        "X, [1, 3, 1]"));
}

TEST(ForgedGradient, OfABlockThatDoesNotRun) {
  for (const std::string type : {"while", "conditional"}) {
    EXPECT_EQ(RunText(BlockGrad(type, "[2]"), {"ygo"})[0].ToVector<float>(),
              std::vector<float>({7, 7}));
    EXPECT_THAT(Problems(BlockGrad(type, "[2]")), IsEmpty());
    EXPECT_THAT(ErrorOf(BlockGrad(type, "[4000]"), "ygo"),
                HasSubstr("\"yg\" is float32 [4000], expected float32 [2]"));
    EXPECT_THAT(Problems(BlockGrad(type, "[4000]")),
                ElementsAre(HasSubstr("the gradient \"yg\" is float32 [4000], expected that of "
                                      "\"y\", float32 [2]")));
  }
}

TEST(ForgedGradient, OfAGradientIsThatOfTheGradient) {
  for (const std::string type : {"while", "conditional"}) {
    EXPECT_EQ(RunText(BlockGrad(type, "[2]", "v@GRAD"), {"ygo"})[0].ToVector<float>(),
              std::vector<float>({7, 7}));
    EXPECT_THAT(Problems(BlockGrad(type, "[3]", "v@GRAD")),
                ElementsAre(HasSubstr("expected that of \"v@GRAD\", float32 [2]")));
  }
}

// As in an old file: an empty list of any type is one of strings.
TEST(ForgedGradient, OfNoResult) {
  for (const std::string type : {"while", "conditional"}) {
    std::string text = BlockGrad(type, "[2]");
    const std::string names = "strings [\"y@GRAD\"]";
    text.replace(text.find(names), names.size(), "ints []");
    std::vector<std::string> warnings;
    EXPECT_THAT(
        VerifyProgram(DefaultOpRegistry(), *ParseProgramText(text), {.warnings = &warnings}),
        IsEmpty());
    EXPECT_THAT(warnings,
                ElementsAre(HasSubstr("attribute \"original_output_grad\" is of type ints, "
                                      "expected strings; it is taken as strings []")));
    EXPECT_THAT(ErrorOf(text, "ygo"), HasSubstr("has 1 gradients of results and 0 names for them"));
  }
}

// As in Fluid, a gradient that nobody writes is 0.
TEST(ForgedGradient, OfTheOutputsOfARecurrentOp) {
  EXPECT_EQ(RunText(RecurrentGrad("og"), {"xg"})[0].ToVector<float>(), std::vector<float>(6, 14));
  EXPECT_EQ(RunText(RecurrentGrad("never"), {"xg"})[0].ToVector<float>(), std::vector<float>(6, 0));
  EXPECT_THAT(ErrorOf(RecurrentGrad("few"), "xg"),
              HasSubstr("\"few\" is float32 [2, 2], expected float32 [3, 2]"));
  EXPECT_THAT(Problems(RecurrentGrad("few")),
              ElementsAre(HasSubstr("the gradient \"few\" is float32 [2, 2], expected that of "
                                    "\"o\", float32 [3, 2]")));
}

TEST(ForgedGradient, OfAnInputThatIsNotThere) {
  const std::string text = R"(program { block 0 {
    var x float32 [3, 2]
    var y float32 [3, 2]
    var mean float32 [3]
    var variance float32 [3]
    var xg float32 [3, 2]
    var sg float32 [2]
    {Out: [x]} = fill_constant() {shape = longs [3, 2], dtype = 5, value = 1.0}
    {Y: [y], Mean: [mean], Variance: [variance]} = layer_norm(X: [x]) {begin_norm_axis = 1}
    {"X@GRAD": [xg], "Scale@GRAD": [sg]} = layer_norm_grad(X: [x], Mean: [mean], Variance: [variance], "Y@GRAD": [x]) {begin_norm_axis = 1}
  } })";
  const std::string expected =
      "layer_norm_grad: output \"Scale@GRAD\", variable \"sg\": expected input \"Scale\", of which "
      "it is the gradient";
  EXPECT_THAT(ErrorOf(text, "sg"), HasSubstr(expected));
  EXPECT_THAT(Problems(text), ElementsAre(HasSubstr(expected)));
  // Files of old versions have no Bias, of which the op reads nothing but the shape.
  std::string without_bias = text;
  without_bias.replace(without_bias.find("\"Scale@GRAD\""), 12, "\"Bias@GRAD\"");
  EXPECT_EQ(RunText(without_bias, {"sg"})[0].ToVector<float>(), std::vector<float>({3, 3}));
}

// The gradient of a branch has the rows for which the branch has run, though nobody has written the
// gradient of what the branch has made.
TEST(ForgedGradient, ThatNobodyWritesHasTheRowsOfTheRun) {
  constexpr const char* kText = R"(program { block 0 {
    var x float32 [-1, 2]
    var mask bool [-1, 1]
    var taken float32 [-1, 2]
    var other float32 [-1, 2]
    var y float32 [-1, 2]
    var s step_scopes float32 []
    var never float32 [-1, 2]
    var takeng float32 [-1, 2]
    {OutTrue: [taken], OutFalse: [other]} = split_lod_tensor(X: [x], Mask: [mask])
    {Out: [y], Scope: [s]} = conditional_block(Cond: [taken], Input: [taken]) {is_scalar_condition = false, sub_block = block 1}
    {"Input@GRAD": [takeng]} = conditional_block_grad(Cond: [taken], Input: [taken], Out: [y], "Out@GRAD": ["y@GRAD"], Scope: [s]) {is_scalar_condition = false, sub_block = block 2, original_output_grad = strings ["y@GRAD"]}
    var "y@GRAD" float32 [-1, 2]
  }
  block 1 parent=0 {
    {Out: [y]} = tanh(X: [taken])
  }
  block 2 parent=0 forward=1 {
    var "taken@GRAD" float32 [-1, 2]
    {"X@GRAD": ["taken@GRAD"]} = tanh_grad(Out: [y], "Out@GRAD": ["y@GRAD"])
  } })";
  Executor executor(Place::Cpu());
  CompiledProgram program = executor.Compile(*ParseProgramText(kText));
  for (const int64_t rows : {3, 5, 4}) {
    const auto count = static_cast<size_t>(rows);
    std::vector<bool> mask(count, true);
    mask[1] = false;
    const FeedList feeds = {
        {"x", Tensor::FromValues<float>({rows, 2}, std::vector<float>(2 * count, 0.5f))},
        {"mask", Tensor::FromValues<bool>({rows, 1}, mask)}};
    EXPECT_EQ(program.Run(feeds, {"takeng"})[0].ToVector<float>(),
              std::vector<float>(2 * (count - 1), 0));
  }
}

// ---- arrays that are tensors

TEST(ForgedArray, IsATensorToTheOpThatWritesIt) {
  const std::string text = R"(program { block 0 {
    var x float32 [3, 1]
    var i int64 [1]
    var a lod_tensor_array float32 [3, 1]
    var cond bool [1]
    var s step_scopes float32 []
    var r float32 [3, 1]
    {Out: [x]} = fill_constant() {shape = longs [3, 1], dtype = 5, value = 1.0}
    {Out: [i]} = fill_constant() {shape = longs [1], dtype = 3, value = 0.0}
    {Out: [a]} = write_to_array(X: [x], I: [i])
    {Out: [a]} = sigmoid(X: [x])
    {Out: [cond]} = fill_constant() {shape = longs [1], dtype = 0, value = 1.0}
    {Out: [r], Scope: [s]} = conditional_block(Cond: [cond], Input: [a, i]) {is_scalar_condition = true, sub_block = block 1}
  }
  block 1 parent=0 {
    {Out: [r]} = read_from_array(X: [a], I: [i])
  } })";
  const std::string expected =
      "output \"a\" would be a tensor: the program declares an array of tensors";
  EXPECT_THAT(ErrorOf(text, "r"),
              AllOf(HasSubstr("sigmoid (block 0, op #3)"), HasSubstr(expected)));
  EXPECT_THAT(Problems(text), ElementsAre(HasSubstr(expected)));
}

TEST(ForgedArray, IsNoTensorToTheOpThatWritesIt) {
  const std::string text = R"(program { block 0 {
    var x float32 [3, 1]
    var i int64 [1]
    var t float32 [3, 1]
    {Out: [x]} = fill_constant() {shape = longs [3, 1], dtype = 5, value = 1.0}
    {Out: [i]} = fill_constant() {shape = longs [1], dtype = 3, value = 0.0}
    {Out: [t]} = write_to_array(X: [x], I: [i])
  } })";
  const std::string expected =
      "output \"t\" would be an array of tensors: the program declares a tensor";
  EXPECT_THAT(ErrorOf(text, "x"),
              AllOf(HasSubstr("write_to_array (block 0, op #2)"), HasSubstr(expected)));
  EXPECT_THAT(Problems(text), ElementsAre(HasSubstr(expected)));
}

// ---- a ragged operand that is broadcast to other rows

TEST(BroadcastRows, HaveNoLoDOfFewerRows) {
  const std::string text = R"(program { block 0 {
    var x float32 [-1] lod=1
    var y float32 [3, 1]
    var z float32 [3, 4]
    {Out: [y]} = fill_constant() {shape = longs [3, 1], dtype = 5, value = 2.0}
    {Out: [z]} = elementwise_add(X: [x], Y: [y]) {axis = -1}
  } })";
  Tensor x = Tensor::FromValues<float>({4}, {1, 2, 3, 4});
  x.set_lod({{0, 2, 3, 4}});
  const Tensor z = RunText(text, {"z"}, {{"x", x}})[0];
  EXPECT_EQ(z.shape(), Shape({3, 4}));
  EXPECT_TRUE(z.lod().empty());
}

// ---- lists of which one is longer

TEST(ForgedList, HasNoNextValuesWithoutValues) {
  const std::string text = R"(program { block 0 {
    var p float32 [2]
    var a float32 [2]
    var b float32 [2]
    var c float32 [2]
    var k int64 [1]
    var l int64 [1]
    var n int64 [1]
    var more int64 [1]
    {Out: [p]} = fill_constant() {shape = longs [2], dtype = 5, value = 1.0}
    {Out: [a]} = fill_constant() {shape = longs [2], dtype = 5, value = 0.0}
    {Out: [b]} = fill_constant() {shape = longs [2], dtype = 5, value = 0.0}
    {Out: [c]} = fill_constant() {shape = longs [2], dtype = 5, value = 0.0}
    {Out: [k]} = fill_constant() {shape = longs [1], dtype = 3, value = 0.0}
    {Out: [l]} = fill_constant() {shape = longs [1], dtype = 3, value = 0.0}
    {Out: [n]} = fill_constant() {shape = longs [1], dtype = 3, value = 0.0}
    {out_sum_1: [a], out_sum_2: [b], out_sum_3: [c], out_num_accumulates: [k], out_old_num_accumulates: [l], out_num_updates: [n, more]} = average_accumulates(param: [p], in_sum_1: [a], in_sum_2: [b], in_sum_3: [c], in_num_accumulates: [k], in_old_num_accumulates: [l], in_num_updates: [n]) {average_window = 0.15, max_average_window = long 10000, min_average_window = long 2}
  } })";
  const std::string expected =
      "output slot \"out_num_updates\" has 2 variables, expected at most 1, as many as input slot";
  EXPECT_THAT(InvalidArgumentText([&] { RunText(text, {"more"}); }), HasSubstr(expected));
  EXPECT_THAT(Problems(text), ElementsAre(HasSubstr(expected)));
}

TEST(ForgedMask, IsMissedByVerifyToo) {
  const std::string text = R"(program { block 0 {
    var g float32 [2]
    var r float32 [2]
    {Out: [g]} = fill_constant() {shape = longs [2], dtype = 5, value = 1.0}
    {"X@GRAD": [r]} = dropout_grad("Out@GRAD": [g]) {dropout_prob = 0.5}
  } })";
  EXPECT_THAT(ErrorOf(text, "r"), HasSubstr("dropout_grad: Mask is missing"));
  EXPECT_THAT(Problems(text), ElementsAre(HasSubstr("dropout_grad: Mask is missing")));
}

// ---- variables of the scope that a loop writes

// Three times, `ops`; p is a persistable that the program itself makes, and r is p afterwards.
std::string ThreeTimes(const std::string& ops, const std::string& p) {
  return StrCat(R"(program { block 0 {
    var i int64 [1]
    var n int64 [1]
    var go bool [1]
    var s step_scopes float32 []
    var x float32 [2, 3]
    var q int32 [2]
    var p )",
                p, R"(
    {Out: [x]} = fill_constant() {shape = longs [2, 3], dtype = 5, value = 1.0}
    {Out: [q]} = assign_value() {shape = ints [2], dtype = 2, int32_values = ints [3, 2]}
    {Out: [i]} = fill_constant() {shape = longs [1], dtype = 3, value = 0.0}
    {Out: [n]} = fill_constant() {shape = longs [1], dtype = 3, value = 3.0}
    {Out: [go]} = less_than(X: [i], Y: [n])
    {Out: [i, go], StepScopes: [s]} = while(Condition: [go], X: [i, n, p, q, x]) {sub_block = block 1}
  }
  block 1 parent=0 {
    var i2 int64 [1]
    var go2 bool [1]
    var y float32 [-1, -1]
    )",
                ops, R"(
    {Out: [i2]} = scale(X: [i]) {scale = 1.0, bias = 1.0}
    {Out: [go2]} = less_than(X: [i2], Y: [n])
    {Out: [i]} = assign(X: [i2])
    {Out: [go]} = assign(X: [go2])
  } })");
}

// In the first run, the scope doesn't have p when the plan is made.
TEST(ScopeInALoop, OfAVariableThatTheProgramMakesIsTheScopesInTheFirstRunToo) {
  const std::string text =
      ThreeTimes("{Out: [p]} = flip(X: [p]) {axis = ints [0]}", R"(float32 [3] persistable
    {Out: [p]} = assign_value() {shape = ints [3], dtype = 5, fp32_values = floats [1, 2, 3]})");
  Executor executor(Place::Cpu());
  CompiledProgram program = executor.Compile(*ParseProgramText(text));
  for (int run = 0; run < 2; ++run) {
    program.Run({}, {});
    EXPECT_EQ(executor.scope().Get("p").ToVector<float>(), std::vector<float>({3, 2, 1})) << run;
  }
}

TEST(ScopeInALoop, IsNoConstantThatAShapeMayFollowFrom) {
  const std::string text = ThreeTimes(R"({Out: [y]} = reshape2(X: [x], Shape: [p]) {}
    {Out: [p]} = assign(X: [q]))",
                                      R"(int32 [2] persistable
    {Out: [p]} = assign_value() {shape = ints [2], dtype = 2, int32_values = ints [2, 3]})");
  Executor executor(Place::Cpu());
  CompiledProgram program = executor.Compile(*ParseProgramText(text));
  for (int run = 0; run < 2; ++run) {
    EXPECT_THAT(ErrorText([&] { program.Run({}, {"p"}); }),
                HasSubstr("variable \"p\" of the scope"))
        << run;
  }
}

// The gradient half runs when the last iteration has overwritten p.
TEST(ScopeInALoop, IsNothingThatAGradientOpMayReadAfterwards) {
  const auto text = [](const std::string& factor) {
    return StrCat(R"(program { block 0 {
    var i int64 [1]
    var n int64 [1]
    var go bool [1]
    var s step_scopes float32 []
    var h float32 [1]
    var hg float32 [1]
    var "h@GRAD" float32 [1]
    param p float32 [1] persistable
    {Out: [h]} = fill_constant() {shape = longs [1], dtype = 5, value = 1.0}
    {Out: [i]} = fill_constant() {shape = longs [1], dtype = 3, value = 0.0}
    {Out: [n]} = fill_constant() {shape = longs [1], dtype = 3, value = 3.0}
    {Out: [go]} = less_than(X: [i], Y: [n])
    {Out: [h, i, go], StepScopes: [s]} = while(Condition: [go], X: [h, i, n, p]) {sub_block = block 1}
    {Out: ["h@GRAD"]} = fill_constant() {shape = longs [1], dtype = 5, value = 1.0}
    {"X@GRAD": [hg, "@EMPTY@", "@EMPTY@", "@EMPTY@"]} = while_grad(X: [h, i, n, p], Out: [h, i, go],
        "Out@GRAD": ["h@GRAD"], StepScopes: [s])
        {original_output_grad = strings ["h@GRAD"], sub_block = block 2}
  }
  block 1 parent=0 {
    var i2 int64 [1]
    var go2 bool [1]
    var was float32 [1]
    var t float32 [1]
    {Out: [was]} = assign(X: [p])
    {Out: [t]} = elementwise_mul(X: [h], Y: [)",
                  factor, R"(])
    {Out: [h]} = assign(X: [t])
    {Out: [p]} = scale(X: [p]) {scale = 2.0}
    {Out: [i2]} = scale(X: [i]) {scale = 1.0, bias = 1.0}
    {Out: [go2]} = less_than(X: [i2], Y: [n])
    {Out: [i]} = assign(X: [i2])
    {Out: [go]} = assign(X: [go2])
  }
  block 2 parent=0 forward=1 {
    var "t@GRAD" float32 [1]
    var "h@GRAD" float32 [1]
    {Out: ["t@GRAD"]} = assign(X: ["h@GRAD"])
    {"X@GRAD": ["h@GRAD"]} = elementwise_mul_grad(X: [h], Y: [)",
                  factor, R"(], "Out@GRAD": ["t@GRAD"])
  } })");
  };
  Executor executor(Place::Cpu());
  executor.scope().Set("p", Tensor::FromValues<float>({1}, {3}));
  EXPECT_EQ(executor.Run(*ParseProgramText(text("was")), {}, {"hg"})[0].Item<float>(), 3 * 6 * 12);
  EXPECT_THAT(ErrorText([&] { executor.Run(*ParseProgramText(text("p")), {}, {"hg"}); }),
              HasSubstr("elementwise_mul_grad: reads \"p\", a variable of the scope that the block "
                        "overwrites"));
}

// ---- parts of results

TEST(ForgedParts, OfARecurrentOpHaveOneShape) {
  const auto text = [](const std::string& second) {
    return StrCat(R"(program { block 0 {
    var times int64 [2, 1]
    var zero int64 [1]
    var one int64 [1]
    var three float32 [3]
    var two float32 [2]
    var a lod_tensor_array float32 [-1]
    var o float32 [2, 3]
    var s step_scopes float32 []
    {Out: [times]} = assign_value() {shape = ints [2, 1], dtype = 3, int64_values = longs [0, 1]}
    {Out: [zero]} = fill_constant() {shape = longs [1], dtype = 3, value = 0.0}
    {Out: [one]} = fill_constant() {shape = longs [1], dtype = 3, value = 1.0}
    {Out: [three]} = fill_constant() {shape = longs [3], dtype = 5, value = 3.0}
    {Out: [two]} = fill_constant() {shape = longs [2], dtype = 5, value = 2.0}
    {Out: [a]} = write_to_array(X: [three], I: [zero])
    {Out: [a]} = write_to_array(X: [)",
                  second, R"(], I: [one])
    {outputs: [o], step_scopes: [s]} = recurrent(inputs: [times], parameters: [a]) {sub_block = block 1}
  }
  block 1 parent=0 {
    var times int64 [1]
    var o float32 [-1]
    {Out: [o]} = read_from_array(X: [a], I: [times])
  } })");
  };
  EXPECT_EQ(RunText(text("three"), {"o"})[0].ToVector<float>(), std::vector<float>(6, 3));
  Executor executor(Place::Cpu());
  EXPECT_THAT(ErrorText([&] { executor.Run(*ParseProgramText(text("two")), {}, {"o"}); }),
              HasSubstr("\"o\" has the shape [2] in an iteration, expected a part of [2, 3]"));
}

// ---- nests

// `depth` branches, one in the other, of which each block runs the next one twice.
std::string Nest(int depth) {
  std::string text = R"(program { block 0 {
    var yes bool [1]
    var x float32 [1]
    {Out: [yes]} = fill_constant() {shape = longs [1], dtype = 0, value = 1.0}
    {Out: [x]} = fill_constant() {shape = longs [1], dtype = 5, value = 1.0}
)";
  for (int i = 1; i <= depth; ++i) {
    for (const std::string scope : {"s", "t"}) {
      text += StrCat("var ", scope, i, " step_scopes float32 []\n{Out: [x], Scope: [", scope, i,
                     "]} = conditional_block(Cond: [yes], Input: [x, yes]) "
                     "{is_scalar_condition = true, sub_block = block ",
                     i, "}\n");
    }
    text += StrCat("}\nblock ", i, " parent=", i - 1, " {\n");
  }
  return text + "{Out: [x]} = scale(X: [x]) {scale = 2.0}\n} }";
}

TEST(ForgedNest, IsNotPlannedForEachWayThroughIt) {
  EXPECT_EQ(RunText(Nest(3), {"x"})[0].Item<float>(), 256);
  EXPECT_THAT(Problems(Nest(40)), IsEmpty());
  Executor executor(Place::Cpu());
  EXPECT_THAT(ErrorText([&] { executor.Run(*ParseProgramText(Nest(40)), {}, {"x"}); }),
              HasSubstr("the 41 blocks of the program would be planned more than 1164 times"));
}

// ---- rows that are said to be those of another variable

// Data that only a run knows.
FeedList Given(int64_t count) {
  const std::vector<float> ones(static_cast<size_t>(count), 1.0f);
  return {{"given", Tensor::FromValues<float>({count}, ones)}};
}

TEST(ForgedRows, OfAnOpThatCallsItsOutputAGradient) {
  EXPECT_EQ(RunText(MadeRows("[3]", "[3]"), {"z"}, Given(3))[0].ToVector<float>(),
            std::vector<float>({14, 14, 14}));
  EXPECT_THAT(ErrorOf(MadeRows("[1]", "[4000]"), "z", Given(4000)),
              HasSubstr("the op has made \"x@GRAD\" as float32 [4000], planned float32 [1]"));
  EXPECT_THAT(ErrorOf(MadeRows("[4000]", "[1]"), "z", Given(1)),
              HasSubstr("the op has made \"x@GRAD\" as float32 [1], planned float32 [4000]"));
}

// ---- rank tables that no lod_rank_table made

TEST(ForgedRankTable, IsNoFeed) {
  Tensor x = Tensor::FromValues<float>({2, 1}, {1, 2});
  x.set_lod({{0, 1, 2}});
  Tensor table = Tensor::FromValues<int64_t>({2, 3}, {0, 1, 0, 1, 1, 1});
  table.set_lod({{0, 1, 2}});
  EXPECT_THAT(ErrorOf(R"(program { block 0 {
                var x float32 [-1, 1] lod=1
                var rt lod_rank_table int64 [-1, 3]
                var a lod_tensor_array float32 [-1, 1]
                var y float32 [-1, 1] lod=1
                {Out: [a]} = lod_tensor_to_array(X: [x], RankTable: [rt])
                {Out: [y]} = array_to_lod_tensor(X: [a], RankTable: [rt])
              } })",
                      "y", {{"x", x}, {"rt", table}}),
              HasSubstr("feed \"rt\": a rank table isn't fed"));
}

// In the segment after `unique`, nobody knows any more who made the table.
std::string TableOfNumbers(const std::string& numbers, const std::string& ops) {
  return StrCat(R"(program { block 0 {
    var v int64 [2, 3]
    var rt lod_rank_table int64 [2, 3]
    var x0 float32 [2, 1]
    var x float32 [2, 1] lod=1
    var given float32 [3]
    var e float32 [3]
    var u float32 [-1]
    var ui int32 [3]
    var u2 float32 [-1]
    var a lod_tensor_array float32 [-1, 1]
    var y float32 [-1, 1] lod=1
    {Out: [v]} = assign_value() {shape = ints [2, 3], dtype = 3, int64_values = longs )",
                numbers,
                R"(}
    {Out: [rt]} = lod_reset(X: [v]) {target_lod = ints [0, 1, 2]}
    {Out: [x0]} = fill_constant() {shape = longs [2, 1], dtype = 5, value = 3.0}
    {Out: [x]} = lod_reset(X: [x0]) {target_lod = ints [0, 1, 2]}
    {Out: [e]} = scale(X: [given]) {scale = 1.0}
    {Out: [u], Index: [ui]} = unique(X: [e]) {dtype = 2}
    {Out: [u2]} = relu(X: [u])
    )",
                ops, "} }");
}

TEST(ForgedRankTable, OfAnEarlierSegment) {
  const std::string ops = R"(
    {Out: [a]} = lod_tensor_to_array(X: [x], RankTable: [rt])
    {Out: [y]} = array_to_lod_tensor(X: [a], RankTable: [rt]))";
  EXPECT_EQ(
      RunText(TableOfNumbers("[0, 1, 0, 1, 1, 1]", ops), {"y"}, Given(3))[0].ToVector<float>(),
      std::vector<float>({3, 3}));
  for (const std::string numbers :
       {"[0, 1, 1000000000, 1, 1, 1]", "[1, 1, 1, 0, 1, 0]", "[0, 1, 0, 0, 1, 0]",
        "[0, 1, -1, 1, 1, 1]", "[0, 4000000000, 0, 1, 1, 1]", "[0, 1, 0, 5, 1, 1]"}) {
    EXPECT_THAT(ErrorOf(TableOfNumbers(numbers, ops), "y", Given(3)),
                HasSubstr("lod_tensor_to_array (block 0, op #7)"))
        << numbers;
  }
}

TEST(ForgedRankTable, OfNumbers) {
  const std::string ops = "{Out: [y]} = reorder_lod_tensor_by_rank(X: [x], RankTable: [v])";
  EXPECT_THAT(ErrorOf(TableOfNumbers("[0, 1, 0, 1, 1, 1]", ops), "y", Given(3)),
              HasSubstr("RankTable isn't what lod_rank_table makes of a tensor"));
}

// ---- LoDs that are declared, and that no op gives

FeedList RaggedX() {
  Tensor x = Tensor::FromValues<float>({3, 1}, {1, 2, 3});
  x.set_lod({{0, 1, 3}});
  return {{"x", x}};
}

// The sum of all rows has none, whatever is declared.
TEST(ForgedLoD, OfAnOpThatLeavesNoRows) {
  EXPECT_THAT(ErrorOf(R"(program { block 0 {
                var x float32 [-1, 1] lod=1
                var sum float32 [-1, 1] lod=1
                var y float32 [-1, 1] lod=1
                {Out: [sum]} = reduce_sum(X: [x]) {dim = ints [], keep_dim = true, reduce_all = false}
                {Out: [y]} = sequence_softmax(X: [sum])
              } })",
                      "y", RaggedX()),
              AllOf(HasSubstr("sequence_softmax (block 0, op #1)"),
                    HasSubstr("input \"X\" has 0 LoD levels, expected at least 1")));
}

TEST(ForgedLoD, OfAPersistableVariable) {
  const std::string text = ErrorText([] {
    RunText(R"(program { block 0 {
              var x float32 [-1, 1] lod=1
              var kept float32 [-1, 1] lod=1 persistable
              var y float32 [-1, 1] lod=1
              {Out: [kept]} = scale(X: [x]) {scale = 2.0}
              {Out: [y]} = sequence_softmax(X: [kept])
            } })",
            {"y"}, RaggedX());
  });
  EXPECT_THAT(text, AllOf(HasSubstr("scale (block 0, op #0)"),
                          HasSubstr("the persistable output \"kept\" would be ragged")));
}

// ---- sizes whose product wraps

TEST(ForgedSizes, OfAStack) {
  constexpr const char* kText = R"(program { block 0 {
    var w float32 [4194304]
    var x float32 [1099511627776, 0]
    var o float32 [1099511627776, 0]
    var s step_scopes float32 []
    var wg float32 [4194304]
    {Out: [w]} = fill_constant() {shape = longs [4194304], dtype = 5, value = 0.5}
    {Out: [x]} = fill_constant() {shape = longs [1099511627776, 0], dtype = 5, value = 1.0}
    {outputs: [o], step_scopes: [s]} = recurrent(inputs: [x], initial_states: [w]) {sub_block = block 1, ex_states = strings ["before"], states = strings ["after"]}
    {"initial_states@GRAD": [wg]} = recurrent_grad(inputs: [x], initial_states: [w], outputs: [o], "outputs@GRAD": [o], step_scopes: [s]) {sub_block = block 2, ex_states = strings ["before"], states = strings ["after"]}
  }
  block 1 parent=0 {
    var x float32 [0]
    var before float32 [4194304]
    var after float32 [4194304]
    var o float32 [0]
    {Out: [after]} = tanh(X: [before])
    {Out: [o]} = assign(X: [x])
  }
  block 2 parent=0 forward=1 {
    var "after@GRAD" float32 [4194304]
    var "before@GRAD" float32 [4194304]
    {"X@GRAD": ["before@GRAD"]} = tanh_grad(Out: [after], "Out@GRAD": ["after@GRAD"])
  } })";
  Executor executor(Place::Cpu());
  try {
    executor.Run(*ParseProgramText(kText), {}, {"wg"});
    ADD_FAILURE() << "no Error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("overflows 63 bits"));
  }
}

// ---- rows of an iteration that are too few for an op

TEST(RowsOfAnIteration, MustBeEnoughForEachOp) {
  const std::string top_k = R"(
    {Out: [v], Indices: [vi]} = top_k_v2(X: [xs]) {k = 2, axis = 0, largest = true, sorted = true}
    {Out: [m]} = reduce_sum(X: [v]) {dim = ints [0], keep_dim = false, reduce_all = false})";
  const std::string slice = R"(
    {Out: [m]} = slice(Input: [xs]) {axes = ints [0], starts = ints [1], ends = ints [2], decrease_axis = ints [0]})";
  // Of two rows it has two, where the plan has three.
  const std::string clamped = R"(
    {Out: [v], Indices: [vi]} = top_k_v2(X: [xs]) {k = 2, axis = 0, largest = true, sorted = true}
    {Out: [w]} = slice(Input: [xs]) {axes = ints [0], starts = ints [0], ends = ints [3]}
    {Out: [m]} = reduce_sum(X: [v]) {dim = ints [0], keep_dim = false, reduce_all = false}
    {Out: [n]} = reduce_sum(X: [w]) {dim = ints [0], keep_dim = false, reduce_all = false}
    {Out: [m]} = elementwise_add(X: [m], Y: [n]) {axis = -1})";
  struct Case {
    std::string ops;
    std::vector<uint64_t> enough;  // offsets of the sequences
    std::vector<uint64_t> too_few;
    std::string error;
  };
  for (const Case& row :
       {Case{top_k, {0, 2, 4}, {0, 3, 4}, "top_k_v2: k = 2"},
        Case{slice, {0, 2, 4}, {0, 3, 4}, "slice: "},
        Case{clamped, {0, 2, 4, 6}, {0, 2, 4, 5}, "\"w\" would have the shape"}}) {
    const auto feed = [](const std::vector<uint64_t>& offsets) {
      const auto rows = static_cast<int64_t>(offsets.back());
      Tensor x = Tensor::FromValues<float>({rows, 2}, std::vector<float>(offsets.back() * 2, 1));
      x.set_lod({offsets});
      return FeedList{{"x", x}};
    };
    const FeedList enough = feed(row.enough);
    EXPECT_EQ(RunText(WithStep(row.ops), {"out"}, enough)[0].shape(), enough[0].second.shape());
    EXPECT_THAT(ErrorOf(WithStep(row.ops), "out", feed(row.too_few)),
                AllOf(HasSubstr("iteration 1"), HasSubstr(row.error)));
  }
}

}  // namespace
}  // namespace skiff
