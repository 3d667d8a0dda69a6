#include "framework/analysis/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "framework/base/error.h"
#include "framework/ir/text.h"
#include "framework/op/op_context.h"
#include "framework/op/shape_warning.h"
#include "tests/framework/executor/tiny_ops.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Messages(const std::string& ops, const VerifyOptions& options = {}) {
  OpRegistry registry;
  tiny::RegisterTinyOps(registry);
  const auto program = ParseProgramText(R"(program { block 0 {
    var x float32 [-1]
    var y float32 [-1]
    var z float32 [-1]
    var s float32 [1]
    var i int64 [-1]
    var w float32 [3] persistable
  )" + ops + "} block 1 parent=0 { {Out: [y]} = tiny_copy(X: [nothing]) } }");
  return VerifyProgram(registry, *program, options);
}

TEST(Verifier, AcceptsAProgramThatRuns) {
  EXPECT_THAT(Messages("{Out: [y]} = tiny_add(X: [x], Y: [w])  {Out: [s]} = tiny_sum(X: [y])"),
              IsEmpty());
}

TEST(Verifier, FindsUnknownOps) {
  EXPECT_THAT(Messages("{Out: [y]} = no_such_op(X: [x])"),
              ElementsAre("no_such_op (block 0, op #0): unknown op \"no_such_op\""));
}

TEST(Verifier, FindsMissingSlotsAndWrongAttributes) {
  EXPECT_THAT(Messages("{Out: [y]} = tiny_add(X: [x])"),
              ElementsAre(HasSubstr("input slot \"Y\" is missing")));
  EXPECT_THAT(Messages("{Out: [y]} = tiny_scale(X: [x]) {factor = \"two\"}"),
              ElementsAre(HasSubstr("attribute \"factor\" is of type string, expected float")));
}

TEST(Verifier, FindsACollectiveOpInABlockOfAnotherOp) {
  OpRegistry registry;
  tiny::RegisterTinyOps(registry);
  const auto program = ParseProgramText(R"(program {
    block 0 {
      var x float32 [2]
      var y float32 [2]
      {Out: [y]} = tiny_exchange(X: [x])
      {Out: [y]} = tiny_while(X: [x]) {sub_block = block 1}
    }
    block 1 parent=0 {
      {Out: [y]} = tiny_copy(X: [x])
      {Out: [y]} = tiny_exchange(X: [x])
    }
  })");
  EXPECT_THAT(VerifyProgram(registry, *program, {.structure_only = true}),
              ElementsAre("tiny_exchange (block 1, op #1): is collective and in a block of another "
                          "op, expected in block 0: each rank must run it as often as the others"));
}

TEST(Verifier, FindsReadsBeforeTheFirstWrite) {
  EXPECT_THAT(Messages("{Out: [y]} = tiny_copy(X: [z])  {Out: [z]} = tiny_copy(X: [x])"),
              ElementsAre(HasSubstr("input \"z\" is read before anything writes it")));
  EXPECT_THAT(Messages("{Out: [y]} = tiny_copy(X: [x])", {.feeds = {}, .infer_feeds = false}),
              ElementsAre(HasSubstr("input \"x\" is read before anything writes it")));
  // The executor feeds, wherever the op is.
  EXPECT_THAT(Messages("{Out: [y]} = tiny_copy(X: [x]) {Out: [x]} = feed(X: [feed])"), IsEmpty());
  EXPECT_THAT(Messages("{Out: [y]} = tiny_copy(X: [x])", {.feeds = {"x"}, .infer_feeds = false}),
              IsEmpty());
}

TEST(Verifier, FindsArgumentsWithoutAVariable) {
  EXPECT_THAT(Messages("{Out: [q]} = tiny_copy(X: [x])"),
              ElementsAre(HasSubstr("output \"q\" has no variable")));
}

TEST(Verifier, TakesNoMissingVariableForAFeed) {
  EXPECT_THAT(Messages("{Out: [q]} = tiny_copy(X: [x])",
                       {.feeds = {"x", "no_such_variable"}, .infer_feeds = false}),
              ElementsAre(HasSubstr("output \"q\" has no variable")));
}

TEST(Verifier, FindsShapesAndDtypesThatTheOpDoesNotMake) {
  EXPECT_THAT(Messages("{Out: [s]} = tiny_copy(X: [w])"),
              ElementsAre(HasSubstr("declared as float32 [1], but the op makes float32 [3]")));
  EXPECT_THAT(Messages("{Out: [i]} = tiny_copy(X: [x])"),
              ElementsAre(HasSubstr("declared as int64 [-1], but the op makes float32 [-1]")));
}

TEST(Verifier, KeepsWrongDeclarationsApartIfAskedTo) {
  std::vector<std::string> wrong;
  EXPECT_THAT(Messages("{Out: [s]} = tiny_copy(X: [w])\n{Out: [q]} = tiny_copy(X: [x])",
                       {.warnings = &wrong}),
              ElementsAre(HasSubstr("output \"q\" has no variable")));
  EXPECT_THAT(wrong,
              ElementsAre(HasSubstr("tiny_copy (block 0, op #0): output \"s\" is declared as "
                                    "float32 [1], but the op makes float32 [3]")));
}

// i is declared as int64, but a run makes it of w, and y of that.
TEST(Verifier, TellsLaterOpsWhatAnOpMakes) {
  std::vector<std::string> wrong;
  EXPECT_THAT(Messages("{Out: [i]} = tiny_copy(X: [w])\n{Out: [y]} = tiny_copy(X: [i])",
                       {.warnings = &wrong}),
              IsEmpty());
  EXPECT_THAT(wrong,
              ElementsAre(HasSubstr("declared as int64 [-1], but the op makes float32 [3]")));
}

TEST(Verifier, FindsOpsWithoutAKernelForTheirDType) {
  EXPECT_THAT(Messages("{Out: [y]} = tiny_copy(X: [i])"),
              ElementsAre(HasSubstr("no kernel for int64, expected one of float32"),
                          HasSubstr("declared as float32 [-1], but the op makes int64 [-1]")));
}

TEST(Verifier, WarnsOfAnAttributeOfAnotherTypeWhoseValueFits) {
  std::vector<std::string> warnings;
  EXPECT_THAT(Messages("{Out: [y]} = tiny_scale(X: [x]) {factor = 2}", {.warnings = &warnings}),
              IsEmpty());
  EXPECT_THAT(warnings, ElementsAre("tiny_scale (block 0, op #0): attribute \"factor\" is of type "
                                    "int, expected float; it is taken as 2.0"));
  EXPECT_THAT(Messages("{Out: [y]} = tiny_scale(X: [x]) {factor = 16777217}"),
              ElementsAre(HasSubstr("is of type int, expected float; found 16777217")));
}

TEST(Verifier, HandsOnWhatAShapeRuleWarnsOf) {
  OpRegistry registry;
  tiny::RegisterTinyOps(registry);
  OpDef def = registry.Get("tiny_copy");
  def.type = "tiny_warn";
  def.infer = [](OpContext& context) {
    WarnOfShape("the last window has no pixel");
    context.SetOutputLike("Out", "X");
  };
  registry.Add(std::move(def));
  registry.AddCpuKernels<float>("tiny_warn", []<typename T>(PrepareContext&) {
    return MakeKernel([](const KernelContext&) {});
  });
  const auto program = ParseProgramText(
      "program { block 0 { var x float32 [2] var y float32 [2] {Out: [y]} = tiny_warn(X: [x]) } }");
  std::vector<std::string> warnings;
  EXPECT_THAT(VerifyProgram(registry, *program, {.warnings = &warnings}), IsEmpty());
  EXPECT_THAT(warnings, ElementsAre("tiny_warn (block 0, op #0): the last window has no pixel"));
  EXPECT_THAT(VerifyProgram(registry, *program), IsEmpty());
}

TEST(Verifier, LeavesToTheRunWhatDependsOnItsFeeds) {
  const VerifyOptions structure{.structure_only = true};
  // x is fed or not, and s need not be what the file of another version says.
  EXPECT_THAT(Messages("{Out: [x]} = tiny_copy(X: [x]) {Out: [s]} = tiny_copy(X: [w])", structure),
              IsEmpty());
  EXPECT_THAT(Messages("{Out: [y]} = tiny_copy(X: [q])", structure),
              ElementsAre(HasSubstr("input \"q\" has no variable")));
  EXPECT_THAT(Messages("{Out: [y]} = tiny_coppy(X: [x])", structure),
              ElementsAre(HasSubstr("unknown op \"tiny_coppy\"; did you mean \"tiny_copy\"?")));
}

TEST(Verifier, LooksIntoSubBlocks) {
  EXPECT_THAT(Messages("{Out: [y]} = tiny_copy(X: [x]) {sub_block = block 1}"),
              ElementsAre(HasSubstr("tiny_copy (block 1, op #0): input \"nothing\"")));
}

// The root block with x, y and a loop over block 1, and its gradient, if there is a block 2.
std::vector<std::string> MessagesOfLoop(const std::string& blocks,
                                        const VerifyOptions& options = {}) {
  OpRegistry registry;
  tiny::RegisterTinyOps(registry);
  const std::string grad = blocks.find("block 2") == std::string::npos
                               ? ""
                               : "{Out: []} = tiny_while_grad() {sub_block = block 2}";
  const auto program = ParseProgramText(R"(program { block 0 {
    var x float32 [1]
    var y float32 [1]
    {Out: [y]} = tiny_copy(X: [x])
    {Out: []} = tiny_while() {sub_block = block 1} )" +
                                        grad + "}" + blocks + "}");
  return VerifyProgram(registry, *program, options);
}

TEST(Verifier, KnowsThatAGradientBlockReadsWhatItsForwardBlockWrote) {
  const std::string forward = R"(block 1 parent=0 { var h float32 [1] var late float32 [1]
                                   {Out: [h]} = tiny_copy(X: [y]) })";
  EXPECT_THAT(MessagesOfLoop(forward + R"(block 2 parent=0 forward=1 { var dh float32 [1]
                                            {Out: [dh]} = tiny_copy(X: [h]) })"),
              IsEmpty());
  EXPECT_THAT(
      MessagesOfLoop(forward + R"(block 2 parent=0 forward=1 { var dh float32 [1]
                                            {Out: [dh]} = tiny_copy(X: [late])
                                            {Out: [late]} = tiny_copy(X: [h]) })"),
      ElementsAre("tiny_copy (block 2, op #0): input \"late\" is read before anything writes "
                  "it"));
  EXPECT_THAT(MessagesOfLoop(forward + R"(block 2 parent=0 { var dh float32 [1]
                                            {Out: [dh]} = tiny_copy(X: [h]) })"),
              ElementsAre("tiny_copy (block 2, op #0): input \"h\" has no variable"));
}

TEST(Verifier, KeepsVariablesOfOneNameInSeveralBlocksApart) {
  // The root's x is fed, the one of block 1 is computed, and the other way round.
  EXPECT_THAT(MessagesOfLoop(R"(block 1 parent=0 { var x float32 [1]
                                  {Out: [x]} = tiny_copy(X: [y]) })",
                             {.feeds = {"x"}, .infer_feeds = false}),
              IsEmpty());
  EXPECT_THAT(MessagesOfLoop(R"(block 1 parent=0 { var y float32 [1] var z float32 [1]
                                  {Out: [z]} = tiny_copy(X: [y])
                                  {Out: [y]} = tiny_copy(X: [z]) })"),
              ElementsAre("tiny_copy (block 1, op #0): input \"y\" is read before anything writes "
                          "it"));
}

TEST(Verifier, FindsForwardBlocksThatAreNotThere) {
  EXPECT_THAT(MessagesOfLoop("block 1 parent=0 forward=1 { }"),
              ElementsAre("block 1: its forward block 1 is itself or outside [0, 1]"));
  OpRegistry registry;
  Program program;
  for (const int32_t forward : {-2, 1, 2147483647}) {
    program.root()->forward_block_index = forward;
    EXPECT_THAT(VerifyProgram(registry, program), ElementsAre(HasSubstr(StrCat(forward))));
  }
}

TEST(Verifier, FindsSubBlocksThatContainTheOpItself) {
  EXPECT_THAT(Messages("{Out: [y]} = tiny_copy(X: [x]) {sub_block = block 0}"),
              ElementsAre(HasSubstr("sub-block 0 contains the op itself")));
}

TEST(Verifier, FindsSubBlocksThatAreNotThere) {
  const auto messages = [](const std::string& blocks) {
    return Messages("{Out: [y]} = tiny_copy(X: [x]) {sub_block = " + blocks + "}");
  };
  const std::string where = "tiny_copy (block 0, op #0): sub-block ";
  EXPECT_THAT(messages("block 2"), ElementsAre(where + "2 is outside [0, 1]"));
  EXPECT_THAT(messages("block -1"), ElementsAre(where + "-1 is outside [0, 1]"));
  EXPECT_THAT(
      messages("blocks [-2147483648, 2147483647]"),
      ElementsAre(where + "-2147483648 is outside [0, 1]", where + "2147483647 is outside [0, 1]"));
}

TEST(Verifier, FindsSubBlocksThatLeadBackToThemselves) {
  OpRegistry registry;
  tiny::RegisterTinyOps(registry);
  const auto program = ParseProgramText(R"(program {
    block 0 { var x float32 [1] var y float32 [1]
      {Out: [y]} = tiny_copy(X: [x]) {sub_block = block 1} }
    block 1 parent=0 { {Out: [y]} = tiny_copy(X: [x]) {sub_block = block 2} }
    block 2 parent=1 { {Out: [y]} = tiny_copy(X: [x]) {sub_block = block 1} }
  })");
  EXPECT_THAT(VerifyProgram(registry, *program),
              ElementsAre("tiny_copy (block 2, op #0): sub-block 1 contains the op itself"));
}

// Each block names the next one `times` times.
std::unique_ptr<Program> Nest(int depth, int times) {
  auto program = std::make_unique<Program>();
  program->root()->CreateVar({.name = "x", .dims = {1}});
  program->root()->CreateVar({.name = "y", .dims = {1}});
  for (int i = 0; i < depth; ++i) {
    Block* block = i == 0 ? program->root() : program->AppendBlock(i - 1);
    for (int j = 0; i + 1 < depth && j < times; ++j) {
      Op op("tiny_copy");
      op.SetInput("X", {"x"}).SetOutput("Out", {"y"}).SetAttr("sub_block", BlockIndex{i + 1});
      block->AppendOp(std::move(op));
    }
  }
  return program;
}

TEST(Verifier, EndsWhateverTheNesting) {
  OpRegistry registry;
  tiny::RegisterTinyOps(registry);
  EXPECT_THAT(VerifyProgram(registry, *Nest(64, 1)), IsEmpty());
  // 2^63 ways to the last block.
  EXPECT_THAT(VerifyProgram(registry, *Nest(64, 2)), IsEmpty());
  // Enough to run out of stack.
  EXPECT_THAT(VerifyProgram(registry, *Nest(100000, 1)),
              ElementsAre("tiny_copy (block 63, op #0): sub-block 64 is nested deeper than 64 "
                          "blocks"));
}

TEST(Verifier, FindsVariablesOfImpossibleShape) {
  const auto with_var = [](const std::string& var) {
    return Messages(var + " {Out: [s]} = tiny_sum(X: [q])");
  };
  EXPECT_THAT(with_var("var q float32 [3, -2]"),
              ElementsAre("variable \"q\" (block 0) of shape [3, -2]: has a dim of -2, expected -1 "
                          "(unknown) or more"));
  EXPECT_THAT(with_var("var q float32 [-9223372036854775808]"), ElementsAre(HasSubstr("-9223372")));
  EXPECT_THAT(with_var("var q float32 [-1, 4294967296, 4294967296]"),
              ElementsAre("variable \"q\" (block 0) of shape [-1, 4294967296, 4294967296]: is too "
                          "large: shape [-1, 4294967296, 4294967296] has more than "
                          "281474976710656 elements, a dim of 0 counted as 1"));
  EXPECT_THAT(with_var("var q float32 [0, 4611686018427387904]"),
              ElementsAre(HasSubstr("is too large: shape [0, 4611686018427387904] has more than")));
  EXPECT_THAT(with_var("var q float32 [2305843009213693952, 0]"),
              ElementsAre(HasSubstr("is too large: shape [2305843009213693952, 0] has more than")));
  EXPECT_THAT(with_var("var q float32 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"),
              ElementsAre(HasSubstr("has rank 10, expected at most 9")));
  EXPECT_THAT(with_var("var q float32 [1] lod=-1"),
              ElementsAre(HasSubstr("has LoD level -1, expected 0 to 64")));
  EXPECT_THAT(with_var("var q float32 [1] lod=2147483646"),
              ElementsAre(HasSubstr("has LoD level 2147483646, expected 0 to 64")));
  EXPECT_THAT(with_var("var q float32 [0, -1]"), IsEmpty());
}

TEST(Verifier, FindsMarksOfTheWrongType) {
  EXPECT_THAT(
      Messages("{Out: [y]} = tiny_copy(X: [x]) {op_role = long 1, op_namescope = 2, "
               "op_role_var = \"w\"}"),
      ElementsAre(
          "tiny_copy (block 0, op #0): attribute \"op_role\" is of type long, expected int",
          "tiny_copy (block 0, op #0): attribute \"op_namescope\" is of type int, expected string",
          "tiny_copy (block 0, op #0): attribute \"op_role_var\" is of type string, expected "
          "strings"));
}

TEST(Verifier, FindsOutputsThatAreFeedsOrWrittenTwice) {
  EXPECT_THAT(
      Messages("{Out: [y]} = tiny_copy(X: [x])", {.feeds = {"x", "y"}, .infer_feeds = false}),
      ElementsAre("tiny_copy (block 0, op #0): output \"y\" is a feed"));
  OpRegistry registry;
  tiny::RegisterTinyOps(registry);
  OpDef def = registry.Get("tiny_copy");
  def.type = "tiny_split";
  def.outputs[0].duplicable = true;
  def.infer = [](OpContext& context) {
    for (size_t i = 0; i < context.OutputCount("Out"); ++i) context.SetOutputLike("Out", "X", i);
  };
  registry.Add(def);
  const auto program = ParseProgramText(R"(program { block 0 {
    var x float32 [1]
    var y float32 [1]
    {Out: [y, y]} = tiny_split(X: [x])
  } })");
  EXPECT_THAT(VerifyProgram(registry, *program),
              ElementsAre("tiny_split (block 0, op #0): output \"y\" is written twice by the op"));
}

TEST(Verifier, NamesScopeAndPlaceOfCreation) {
  OpRegistry registry;
  tiny::RegisterTinyOps(registry);
  Program program;
  Op op("tiny_copy");
  op.SetInput("X", {"x"}).SetOutput("Out", {"y"}).SetAttr("op_namescope", std::string("head"));
  op.site = {"net.cc", 12};
  program.root()->AppendOp(std::move(op));
  const std::string where = "tiny_copy (block 0, op #0 \"head\", net.cc:12): ";
  EXPECT_THAT(
      VerifyProgram(registry, program),
      ElementsAre(where + "input \"x\" has no variable", where + "output \"y\" has no variable"));
}

TEST(Verifier, ThrowsEveryMessageAtOnce) {
  OpRegistry registry;
  const auto program = ParseProgramText(R"(program { block 0 {
    {} = first() {} = second() } })");
  try {
    CheckProgram(registry, *program);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_STREQ(error.what(),
                 "first (block 0, op #0): unknown op \"first\"\n"
                 "second (block 0, op #1): unknown op \"second\"");
  }
}

}  // namespace
}  // namespace skiff
