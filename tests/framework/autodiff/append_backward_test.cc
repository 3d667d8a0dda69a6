#include "framework/autodiff/append_backward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "framework/analysis/verifier.h"
#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/ir/text.h"
#include "framework/op/grad.h"
#include "framework/op/op_context.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string Arguments(const Slots& slots) {
  std::string text;
  for (const SlotArguments& slot : slots) {
    text += StrCat(text.empty() ? "" : ", ", slot.slot, "=", Join(slot.arguments, "+"));
  }
  return text;
}

// One line an op, without attributes.
std::string GradientOps(const Block& block) {
  std::string text;
  for (const auto& op : block.ops()) {
    if ((op->role() & kRoleBackward) == 0) continue;
    text += StrCat(op->type, "(", Arguments(op->inputs), ") -> ", Arguments(op->outputs), "\n");
  }
  return text;
}

std::unique_ptr<Program> Parse(const std::string& variables, const std::string& ops) {
  auto program = ParseProgramText("program { block 0 {\n" + variables + ops + "} }");
  return program;
}

BackwardResult Backward(Program* program, const BackwardOptions& options = {}) {
  return AppendBackward(DefaultOpRegistry(), program, "loss", options);
}

constexpr const char* kNetVars = R"(
  var x float32 [-1, 4] stop_gradient check_feed
  param w float32 [4, 3] persistable
  var h float32 [-1, 3]
  var r float32 [-1, 3]
  var loss float32 [1]
)";

constexpr const char* kNetOps = R"(
  {Out: [h]} = mul(X: [x], Y: [w]) {x_num_col_dims = 1, y_num_col_dims = 1}
  {Out: [r]} = relu(X: [h])
  {Out: [loss]} = mean(X: [r])
)";

// Vectors, of which w is a parameter, and a number.
constexpr const char* kVectors = R"(
  param w float32 [3] persistable
  var a float32 [3]
  var b float32 [3]
  var c float32 [3]
  var loss float32 [1]
)";

TEST(AppendBackward, WritesFluidsGradientOps) {
  const auto program = Parse(kNetVars, kNetOps);
  const BackwardResult result = Backward(program.get());
  EXPECT_EQ(GradientOps(*program->root()),
            "fill_constant() -> Out=loss@GRAD\n"
            "mean_grad(X=r, Out@GRAD=loss@GRAD) -> X@GRAD=r@GRAD\n"
            "relu_grad(Out=r, Out@GRAD=r@GRAD) -> X@GRAD=h@GRAD\n"
            "mul_grad(X=x, Y=w, Out@GRAD=h@GRAD) -> X@GRAD=@EMPTY@, Y@GRAD=w@GRAD\n");
  ASSERT_EQ(result.parameters.size(), 1u);
  EXPECT_EQ(result.parameters[0].parameter->name, "w");
  EXPECT_EQ(result.parameters[0].gradient->name, "w@GRAD");
  EXPECT_EQ(result.gradients.at("h"), "h@GRAD");
  EXPECT_EQ(result.gradients.count("x"), 0u);
}

TEST(AppendBackward, PrintsRolesAndTheSeedOfTheGradient) {
  const auto program = Parse(kNetVars, kNetOps);
  Backward(program.get());
  const auto& ops = program->root()->ops();
  EXPECT_EQ(ops[2]->role(), kRoleForward | kRoleLoss);
  EXPECT_EQ(PrintOp(*ops[3]),
            "{Out: [\"loss@GRAD\"]} = fill_constant() {dtype = 5, op_role = 257, shape = longs "
            "[1], value = 1.0}");
  EXPECT_EQ(PrintOp(*ops[6]),
            "{X@GRAD: [\"@EMPTY@\"], Y@GRAD: [\"w@GRAD\"]} = mul_grad(X: [\"x\"], Y: [\"w\"], "
            "Out@GRAD: [\"h@GRAD\"]) {op_role = 1, op_role_var = strings [\"w\", \"w@GRAD\"], "
            "x_num_col_dims = 1, y_num_col_dims = 1}");
  EXPECT_FALSE(ops[5]->HasAttr(kOpRoleVarAttr));
}

TEST(AppendBackward, StatesTheDefaultsOfAGradientOpsAttributes) {
  // PaddlePaddle has defaults for forward ops only.
  const auto program = Parse(kNetVars, R"(
      {Out: [h]} = mul(X: [x], Y: [w])
      {Out: [r]} = softmax(X: [h]) {data_format = "NCHW"}
      {Out: [loss]} = mean(X: [r])
    )");
  Backward(program.get());
  const auto& ops = program->root()->ops();
  EXPECT_FALSE(ops[0]->HasAttr("x_num_col_dims"));
  ASSERT_EQ(ops[6]->type, "mul_grad");
  EXPECT_EQ(ops[6]->Attr<int32_t>("x_num_col_dims"), 1);
  ASSERT_EQ(ops[5]->type, "softmax_grad");
  EXPECT_EQ(ops[5]->Attr<int32_t>("axis"), -1);
  EXPECT_EQ(ops[5]->Attr<std::string>("data_format"), "NCHW");
}

TEST(AppendBackward, TakesAnIntForAFloat) {
  const auto program = Parse(kNetVars, R"(
    {Out: [h]} = mul(X: [x], Y: [w]) {x_num_col_dims = 1, y_num_col_dims = 1}
    {Out: [r]} = scale(X: [h]) {scale = 2}
    {Out: [loss]} = mean(X: [r]))");
  Backward(program.get());
  for (const auto& op : program->root()->ops()) {
    if (op->type != "scale") continue;
    EXPECT_EQ(op->Attr<float>("scale"), 2.0f);
  }
}

TEST(AppendBackward, GivesGradientsTheShapeOfTheirVariables) {
  const auto program = Parse(kNetVars, kNetOps);
  Backward(program.get());
  const Var& gradient = *program->root()->GetVar("h@GRAD");
  EXPECT_EQ(gradient.dims, (std::vector<int64_t>{-1, 3}));
  EXPECT_EQ(gradient.dtype, DType::kFloat32);
  EXPECT_FALSE(gradient.persistable);
  EXPECT_EQ(program->root()->GetVar("w@GRAD")->dims, (std::vector<int64_t>{4, 3}));
}

TEST(AppendBackward, TakesDtypeAndRankFromTheLoss) {
  const auto program = Parse(R"(
      param w float64 [3] persistable
      var s float64 [3]
      var loss float64 []
    )",
                             R"(
      {Out: [s]} = square(X: [w])
      {Out: [loss]} = reduce_sum(X: [s]) {dim = ints [0], reduce_all = true}
    )");
  program->root()->GetVar("loss")->dims = {};
  Backward(program.get());
  EXPECT_EQ(program->root()->GetVar("loss@GRAD")->dtype, DType::kFloat64);
  EXPECT_TRUE(program->root()->GetVar("loss@GRAD")->dims.empty());
}

TEST(AppendBackward, AddsUpAFanOutAfterTheLastContribution) {
  const auto program = Parse(kVectors, R"(
      {Out: [a]} = square(X: [w])
      {Out: [b]} = square(X: [a])
      {Out: [c]} = elementwise_mul(X: [a], Y: [b]) {axis = -1}
      {Out: [loss]} = mean(X: [c])
    )");
  Backward(program.get());
  EXPECT_EQ(GradientOps(*program->root()),
            "fill_constant() -> Out=loss@GRAD\n"
            "mean_grad(X=c, Out@GRAD=loss@GRAD) -> X@GRAD=c@GRAD\n"
            "elementwise_mul_grad(Out@GRAD=c@GRAD, X=a, Y=b) -> X@GRAD=a@GRAD@RENAME@0, "
            "Y@GRAD=b@GRAD\n"
            "square_grad(X=a, Out@GRAD=b@GRAD) -> X@GRAD=a@GRAD@RENAME@1\n"
            "sum(X=a@GRAD@RENAME@0+a@GRAD@RENAME@1) -> Out=a@GRAD\n"
            "square_grad(X=w, Out@GRAD=a@GRAD) -> X@GRAD=w@GRAD\n");
  EXPECT_EQ(program->root()->GetVar("a@GRAD@RENAME@1")->dims, (std::vector<int64_t>{3}));
}

TEST(AppendBackward, AddsUpOneVariableInTwoSlotsOfAnOp) {
  const auto program = Parse(kVectors, R"(
      {Out: [c]} = elementwise_mul(X: [w], Y: [w]) {axis = -1}
      {Out: [loss]} = mean(X: [c])
    )");
  Backward(program.get());
  EXPECT_THAT(GradientOps(*program->root()),
              HasSubstr("-> X@GRAD=w@GRAD@RENAME@0, Y@GRAD=w@GRAD@RENAME@1\n"
                        "sum(X=w@GRAD@RENAME@0+w@GRAD@RENAME@1) -> Out=w@GRAD\n"));
  EXPECT_EQ(program->root()->ops().back()->Attr<std::vector<std::string>>(kOpRoleVarAttr),
            (std::vector<std::string>{"w", "w@GRAD"}));
}

TEST(AppendBackward, StopsAtNoGradVariables) {
  const auto program = Parse(kNetVars, kNetOps);
  EXPECT_THAT(ErrorText([&] { Backward(program.get(), {.no_grad = {"h"}}); }),
              HasSubstr("depends on no variable that wants a gradient"));
  EXPECT_EQ(GradientOps(*program->root()), "");
  EXPECT_THAT(ErrorText([&] { Backward(program.get(), {.no_grad = {"typo"}}); }),
              HasSubstr("\"typo\", which is no variable"));
}

TEST(AppendBackward, StopsAtVariablesMarkedStopGradient) {
  const auto program = Parse(R"(
      param u float32 [3] persistable
      param w float32 [3] persistable
      var a float32 [3] stop_gradient
      var c float32 [3]
      var loss float32 [1]
    )",
                             R"(
      {Out: [a]} = square(X: [u])
      {Out: [c]} = elementwise_mul(X: [a], Y: [w]) {axis = -1}
      {Out: [loss]} = mean(X: [c])
    )");
  const BackwardResult result = Backward(program.get());
  ASSERT_EQ(result.parameters.size(), 1u);
  EXPECT_EQ(result.parameters[0].parameter->name, "w");
  EXPECT_THAT(GradientOps(*program->root()), HasSubstr("X@GRAD=@EMPTY@, Y@GRAD=w@GRAD"));
  EXPECT_THAT(GradientOps(*program->root()), Not(HasSubstr("square_grad")));
}

TEST(AppendBackward, DifferentiatesByTheListedParametersOnly) {
  const auto program = Parse(R"(
      param u float32 [3] persistable
      param w float32 [3] persistable
      var c float32 [3]
      var loss float32 [1]
    )",
                             R"(
      {Out: [c]} = elementwise_mul(X: [u], Y: [w]) {axis = -1}
      {Out: [loss]} = mean(X: [c])
    )");
  EXPECT_THAT(ErrorText([&] { Backward(program.get(), {.parameters = {"c"}}); }),
              HasSubstr("\"c\", which is no parameter"));
  Backward(program.get(), {.parameters = {"u"}});
  EXPECT_THAT(GradientOps(*program->root()), HasSubstr("X@GRAD=u@GRAD, Y@GRAD=@EMPTY@"));
}

// Whatever marks they have, and whatever computes them.
TEST(AppendBackward, DifferentiatesByTheListedInputsOnly) {
  const auto program = Parse(kNetVars, kNetOps);
  EXPECT_THAT(ErrorText([&] { Backward(program.get(), {.inputs = {"typo"}}); }),
              HasSubstr("\"typo\", which is no variable of the root block"));
  EXPECT_TRUE(Backward(program.get(), {.inputs = {"x", "h"}}).parameters.empty());
  EXPECT_EQ(GradientOps(*program->root()),
            "fill_constant() -> Out=loss@GRAD\n"
            "mean_grad(X=r, Out@GRAD=loss@GRAD) -> X@GRAD=r@GRAD\n"
            "relu_grad(Out=r, Out@GRAD=r@GRAD) -> X@GRAD=h@GRAD\n"
            "mul_grad(X=x, Y=w, Out@GRAD=h@GRAD) -> X@GRAD=x@GRAD, Y@GRAD=@EMPTY@\n");
  const auto of_hidden = Parse(kNetVars, kNetOps);
  Backward(of_hidden.get(), {.inputs = {"h"}});
  EXPECT_THAT(GradientOps(*of_hidden->root()), Not(HasSubstr("mul_grad")));
  const auto of_parameter = Parse(kNetVars, kNetOps);
  const BackwardResult result = Backward(of_parameter.get(), {.inputs = {"w"}});
  ASSERT_EQ(result.parameters.size(), 1u);
  EXPECT_EQ(result.parameters[0].gradient->name, "w@GRAD");
}

TEST(AppendBackward, FillsZerosForAnUnusedOutput) {
  const auto program = Parse(R"(
      param w float32 [4, 6] persistable
      var a float32 [4, 3]
      var b float32 [4, 3]
      var loss float32 [1]
    )",
                             R"(
      {Out: [a, b]} = split(X: [w]) {axis = 1, num = 2}
      {Out: [loss]} = mean(X: [b])
    )");
  Backward(program.get());
  EXPECT_THAT(GradientOps(*program->root()), HasSubstr("fill_zeros_like(X=a) -> Out=a@GRAD\n"
                                                       "concat(X=a@GRAD+b@GRAD) -> Out=w@GRAD\n"));
}

TEST(AppendBackward, LeavesOutOpsThatDontLeadToTheLoss) {
  const auto program = Parse(kVectors, R"(
      {Out: [a]} = square(X: [w])
      {Out: [b]} = relu(X: [a])
      {Out: [loss]} = mean(X: [a])
    )");
  Backward(program.get());
  EXPECT_THAT(GradientOps(*program->root()), Not(HasSubstr("relu_grad")));
  EXPECT_THAT(GradientOps(*program->root()), Not(HasSubstr("RENAME")));
}

TEST(AppendBackward, RefusesToReadAnOverwrittenValue) {
  const auto program = Parse(kVectors, R"(
      {Out: [a]} = relu(X: [w])
      {Out: [b]} = square(X: [a])
      {Out: [a]} = tanh(X: [b])
      {Out: [loss]} = mean(X: [a])
    )");
  const std::string message = ErrorText([&] { Backward(program.get()); });
  EXPECT_THAT(message, HasSubstr("square (block 0, op #1): its gradient op square_grad reads "
                                 "\"a\" (slot X), which is overwritten later by tanh (block 0, op "
                                 "#2)"));
  EXPECT_EQ(program->root()->ops().size(), 4u);
}

TEST(AppendBackward, RefusesToReadWhatTheOpItselfOverwrote) {
  const auto program = Parse(kVectors, R"(
      {Out: [a]} = relu(X: [w])
      {Out: [a]} = square(X: [a])
      {Out: [loss]} = mean(X: [a])
    )");
  EXPECT_THAT(
      ErrorText([&] { Backward(program.get()); }),
      HasSubstr("square (block 0, op #1): its gradient op square_grad reads \"a\" (slot X), "
                "which is overwritten later by square (block 0, op #1)"));
}

TEST(AppendBackward, FollowsDefinitionsThroughAnOpInPlace) {
  // relu_grad reads Out only, so overwriting X is legal; the gradient of the name has two values.
  const auto program = Parse(kVectors, R"(
      {Out: [a]} = square(X: [w])
      {Out: [a]} = relu(X: [a])
      {Out: [loss]} = mean(X: [a])
    )");
  Backward(program.get());
  EXPECT_EQ(GradientOps(*program->root()),
            "fill_constant() -> Out=loss@GRAD\n"
            "mean_grad(X=a, Out@GRAD=loss@GRAD) -> X@GRAD=a@GRAD\n"
            "relu_grad(Out=a, Out@GRAD=a@GRAD) -> X@GRAD=a@GRAD\n"
            "square_grad(X=w, Out@GRAD=a@GRAD) -> X@GRAD=w@GRAD\n");
}

TEST(AppendBackward, GivesASecondCallNewNames) {
  const auto program = Parse(std::string(kNetVars) + "var loss2 float32 [1]\n",
                             std::string(kNetOps) + "{Out: [loss2]} = mean(X: [h])\n");
  Backward(program.get());
  const size_t before = program->root()->ops().size();
  const BackwardResult second = AppendBackward(DefaultOpRegistry(), program.get(), "loss2");
  ASSERT_EQ(second.parameters.size(), 1u);
  EXPECT_EQ(second.parameters[0].gradient->name, "w@GRAD_0");
  EXPECT_EQ(second.gradients.at("h"), "h@GRAD_0");
  EXPECT_EQ(Arguments(program->root()->ops()[before + 2]->inputs), "X=x, Y=w, Out@GRAD=h@GRAD_0");
}

TEST(AppendBackward, NamesAnOpWithoutAGradient) {
  OpRegistry registry;
  const auto same = [](OpContext& context) { context.SetOutputLike("Out", "X"); };
  registry.Add({.type = "round_off",
                .doc = "For the test.",
                .inputs = {{.name = "X"}},
                .outputs = {{.name = "Out"}},
                .infer = same,
                .no_gradient_reason = "it is flat"});
  const auto program = Parse("param w float32 [1] persistable\nvar loss float32 [1]\n",
                             "{Out: [loss]} = round_off(X: [w])\n");
  EXPECT_THAT(ErrorText([&] { AppendBackward(registry, program.get(), "loss"); }),
              HasSubstr("round_off (block 0, op #0): the gradient of \"loss\" is needed, but the "
                        "op has none: it is flat"));
}

TEST(AppendBackward, NamesTheOpsThatLetNoGradientThrough) {
  const auto program = Parse(
      "param w float32 [3] persistable\nvar rounded int32 [3]\nvar h float32 [3]\n"
      "var best int64 [1]\nvar b float32 [1]\nvar loss float32 [1]\n",
      "{Out: [rounded]} = cast(X: [w]) {in_dtype = 5, out_dtype = 2}  # net.cc:3\n"
      "{Out: [h]} = cast(X: [rounded]) {in_dtype = 2, out_dtype = 5}\n"
      "{Out: [best]} = arg_max(X: [w]) {axis = long 0, keepdims = true}\n"
      "{Out: [b]} = cast(X: [best]) {in_dtype = 3, out_dtype = 5}\n"
      "{Out: [loss]} = mean(X: [b])\n");
  program->root()->ops()[2]->site = {.file = "net.cc", .line = 12};
  EXPECT_THAT(
      ErrorText([&] { AppendBackward(DefaultOpRegistry(), program.get(), "loss"); }),
      AllOf(HasSubstr("depends on no variable that wants a gradient: no gradient flows through "
                      "arg_max (block 0, op #2, net.cc:12) gives \"best\" of int64 and has no "
                      "gradient: "),
            Not(HasSubstr("stop_gradient")), Not(HasSubstr("rounded"))));
}

TEST(AppendBackward, BlamesTheMarksIfAllOpsHaveGradients) {
  const auto program =
      Parse("param w float32 [3] persistable stop_gradient\nvar loss float32 [1]\n",
            "{Out: [loss]} = mean(X: [w])\n");
  EXPECT_THAT(ErrorText([&] { AppendBackward(DefaultOpRegistry(), program.get(), "loss"); }),
              HasSubstr("every parameter and feed on its way is marked stop_gradient"));
}

TEST(AppendBackward, ChecksTheLoss) {
  const auto program = Parse("var i int64 [1]\nvar m float32 [2]\nvar unwritten float32 [1]\n", "");
  const auto message = [&](const char* loss) {
    return ErrorText([&] { AppendBackward(DefaultOpRegistry(), program.get(), loss); });
  };
  EXPECT_THAT(message("none"), HasSubstr("\"none\" is no variable"));
  EXPECT_THAT(message("i"), HasSubstr("is of dtype int64, expected a float"));
  EXPECT_THAT(message("m"), HasSubstr("has the shape [2], expected one element"));
  EXPECT_THAT(message("unwritten"), HasSubstr("no op of the root block writes"));
}

TEST(AppendBackward, KeepsTheCreationSiteOfTheForwardOp) {
  const auto program = Parse(kNetVars, kNetOps);
  program->root()->ops()[1]->site = {"net.cc", 7};
  Backward(program.get());
  EXPECT_EQ(program->root()->ops()[5]->type, "relu_grad");
  EXPECT_EQ(program->root()->ops()[5]->site.file, "net.cc");
  EXPECT_EQ(program->root()->ops()[5]->site.line, 7);
}

// Runs a block, and has a gradient rule that an op without one could have.
OpDef RunBlockDef() {
  return {.type = "run_block",
          .doc = "For the test: runs a block any number of times.",
          .inputs = {{.name = "X", .duplicable = true, .dispensable = true}},
          .outputs = {{.name = "Out", .duplicable = true, .dispensable = true}},
          .infer = [](OpContext&) {},
          .grad = GradOp("run_block_grad", {"X", "Out@GRAD"}, {"X@GRAD"})};
}

const OpRegistry& RegistryWithRunBlock() {
  static const OpRegistry& registry = *[] {
    auto* made = new OpRegistry;
    for (const char* type : {"square", "square_grad", "mean", "mean_grad", "fill_constant",
                             "elementwise_add", "elementwise_mul", "elementwise_mul_grad"}) {
      made->Add(DefaultOpRegistry().Get(type));
    }
    made->Add(RunBlockDef());
    return made;
  }();
  return registry;
}

// A program whose op #1 runs a block; loss = mean(w * state).
std::unique_ptr<Program> ProgramThatRunsABlock(const std::string& start,
                                               const std::string& run_block,
                                               const std::string& block) {
  return ParseProgramText(R"(program {
    block 0 {
      var x float32 [3] stop_gradient check_feed
      param w float32 [3] persistable
      param v float32 [3] persistable
      var state float32 [3]
      var other float32 [3]
      var product float32 [3]
      var loss float32 []
      {Out: [state]} = )" +
                          start + "\n" + run_block + R"( {sub_block = block 1}
      {Out: [product]} = elementwise_mul(X: [w], Y: [state])
      {Out: [loss]} = mean(X: [product])
    }
    block 1 parent=0 {
      param u float32 [3] persistable
      )" + block + "\n} }");
}

constexpr const char* kZeros = "fill_constant() {shape = longs [3], dtype = 5, value = 0.0}";

TEST(AppendBackward, RefusesToDifferentiateAnOpThatRunsABlock) {
  const auto expect_refusal = [](const std::string& start, const std::string& run_block,
                                 const std::string& block) {
    SCOPED_TRACE(start + "\n" + run_block + "\n" + block);
    const auto program = ProgramThatRunsABlock(start, run_block, block);
    const auto before = program->Clone();
    try {
      AppendBackward(RegistryWithRunBlock(), program.get(), "loss");
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnimplemented);
      EXPECT_THAT(error.what(),
                  HasSubstr("run_block (block 0, op #1): the gradient of \"state\" is needed, but "
                            "the op runs a block of ops and its definition doesn't say how"));
    }
    EXPECT_TRUE(*program == *before);
  };
  // A state that starts at zero and adds up a parameter.
  const std::string add = "{Out: [state]} = elementwise_add(X: [state], Y: [v])";
  expect_refusal(kZeros, "{Out: [state]} = run_block(X: [state, v])", add);
  // The same, though the slots don't tell.
  expect_refusal(kZeros, "{} = run_block()", add);
  expect_refusal(kZeros, "{} = run_block(X: [v])", add);
  // The parameter is the block's own.
  expect_refusal(kZeros, "{Out: [state]} = run_block()", "{Out: [state]} = square(X: [u])");
  // The block may run zero times and leave what was there.
  const std::string overwrite = std::string("{Out: [state]} = ") + kZeros;
  expect_refusal("square(X: [v])", "{Out: [state]} = run_block()", overwrite);
  expect_refusal("square(X: [v])", "{} = run_block()", overwrite);
}

TEST(AppendBackward, AllowsBlocksThatNoGradientPassesThrough) {
  const auto expect_gradient_of_w_only = [](const std::string& start, const std::string& run_block,
                                            const std::string& block) {
    SCOPED_TRACE(start + "\n" + run_block + "\n" + block);
    const auto program = ProgramThatRunsABlock(start, run_block, block);
    const BackwardResult result = AppendBackward(RegistryWithRunBlock(), program.get(), "loss");
    ASSERT_EQ(result.parameters.size(), 1u);
    EXPECT_EQ(result.parameters[0].parameter->name, "w");
    EXPECT_EQ(program->block_count(), 2u);
    EXPECT_THAT(GradientOps(*program->root()),
                HasSubstr("elementwise_mul_grad(Out@GRAD=product@GRAD, X=w, Y=state) -> "
                          "X@GRAD=w@GRAD, Y@GRAD=@EMPTY@\n"));
    EXPECT_THAT(VerifyProgram(RegistryWithRunBlock(), *program), IsEmpty());
  };
  // A mask that is computed from a feed.
  expect_gradient_of_w_only(kZeros, "{Out: [state]} = run_block(X: [x])",
                            "{Out: [state]} = elementwise_add(X: [state], Y: [x])");
  // What the loss doesn't depend on.
  expect_gradient_of_w_only(kZeros, "{Out: [other]} = run_block(X: [w, v])",
                            "{Out: [other]} = elementwise_add(X: [w], Y: [v])");
}

TEST(AppendBackward, AllowsBlocksWhoseResultsAreMarkedStopGradient) {
  const auto program =
      ProgramThatRunsABlock(kZeros, "{Out: [state]} = run_block(X: [v])",
                            "{Out: [state]} = elementwise_add(X: [state], Y: [v])");
  program->root()->GetVar("state")->stop_gradient = true;
  const BackwardResult result = AppendBackward(RegistryWithRunBlock(), program.get(), "loss");
  ASSERT_EQ(result.parameters.size(), 1u);
  EXPECT_EQ(result.parameters[0].parameter->name, "w");
}

TEST(AppendBackward, RefusesToReadWhatASubBlockOverwrote) {
  const auto parse = [](const std::string& body) {
    return ParseProgramText(R"(program {
      block 0 {
        param w float32 [3] persistable
        var a float32 [3]
        var b float32 [3]
        var loss float32 [1]
        {Out: [a]} = square(X: [w])
        {Out: [b]} = square(X: [a])
        {Out: []} = run_block(X: [w]) {sub_block = block 1}
        {Out: [loss]} = mean(X: [b])
      }
      block 1 parent=0 {)" + body +
                            "} }");
  };
  const auto overwriting = parse("{Out: [a]} = square(X: [w])");
  EXPECT_THAT(
      ErrorText([&] { AppendBackward(RegistryWithRunBlock(), overwriting.get(), "loss"); }),
      HasSubstr("reads \"a\" (slot X), which is overwritten later by run_block (block 0, op #2)"));
  const auto with_its_own = parse("var a float32 [3] {Out: [a]} = square(X: [w])");
  AppendBackward(RegistryWithRunBlock(), with_its_own.get(), "loss");
}

}  // namespace
}  // namespace skiff
