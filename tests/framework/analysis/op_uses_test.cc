#include "framework/analysis/op_uses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/ir/text.h"
#include "tests/framework/executor/tiny_ops.h"
#include "tests/framework/ir/random_program.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

OpRegistry& TinyRegistry() {
  static OpRegistry& registry = *[] {
    auto* made = new OpRegistry;
    tiny::RegisterTinyOps(*made);
    return made;
  }();
  return registry;
}

std::unique_ptr<Program> Parse(const std::string& blocks) {
  return ParseProgramText("program {" + blocks + "}");
}

// Returns texts such as "0.x reads, updates": block and name of the variable, and how it is used. A
// write that keeps nothing of the old value replaces it; any other write updates it.
std::vector<std::string> Texts(const OpUses& uses) {
  std::vector<std::string> texts;
  for (const VarUse& use : uses.vars) {
    std::vector<std::string> what;
    if (use.reads_data) what.push_back("reads");
    if (use.reads_shape) what.push_back("measures");
    if (use.writes) what.push_back(use.replaces ? "replaces" : "updates");
    texts.push_back(StrCat(use.block->index(), ".", use.var->name, " ", Join(what, ", ")));
  }
  return texts;
}

// Of the op at a position of a block.
std::vector<std::string> Uses(const std::string& blocks, int32_t block = 0, size_t position = 0) {
  const auto program = Parse(blocks);
  return Texts(UsesOf(TinyRegistry(), *program->block(block), position));
}

std::string MessageOf(const std::string& blocks, ErrorCode code = ErrorCode::kInvalidArgument) {
  SCOPED_TRACE(blocks);
  return ErrorText(code, [&] { Uses(blocks); });
}

TEST(OpUses, AreItsArgumentsEachOnceWithoutTheEmptyOne) {
  EXPECT_THAT(Uses(R"(block 0 { var x float32 [1] var y float32 [1] var z float32 [1]
                        {Out: [y, "@EMPTY@", z]} = tiny_while(X: [x, x, "@EMPTY@", z]) })"),
              ElementsAre("0.x reads", "0.z reads, replaces", "0.y replaces"));
}

TEST(OpUses, TellReadsOfTheDataFromReadsOfTheShape) {
  const std::string vars = "block 0 { var x float32 [1] var y float32 [1] ";
  EXPECT_THAT(Uses(vars + "{Out: [y]} = tiny_ones_like(X: [x]) }"),
              ElementsAre("0.x measures", "0.y replaces"));
  EXPECT_THAT(Uses(vars + "{Out: [y]} = unknown(X: [x]) }"),
              ElementsAre("0.x reads", "0.y replaces"));
  EXPECT_THAT(Uses(vars + "{Out: [y]} = tiny_while(X: [x]) {sub_block = block 1} }"
                          "block 1 parent=0 { {Out: [y]} = tiny_ones_like(X: [x]) }"),
              ElementsAre("0.x reads, measures", "0.y updates"));
  EXPECT_THAT(Uses(vars + "{} = tiny_while() {sub_block = block 1} }"
                          "block 1 parent=0 { {Out: [y]} = tiny_ones_like(X: [x]) }"),
              ElementsAre("0.x measures", "0.y updates"));
}

TEST(OpUses, OfASubBlockAreWhatItCaptures) {
  EXPECT_THAT(Uses(R"(
    block 0 { var x float32 [1] var y float32 [1]
      {} = tiny_while() {sub_block = block 1} }
    block 1 parent=0 { var inner float32 [1]
      {Out: [inner]} = tiny_copy(X: [x])
      {Out: [y]} = tiny_copy(X: [inner]) })"),
              ElementsAre("0.x reads", "0.y updates"));
}

TEST(OpUses, ReachIntoSubBlocksOfSubBlocks) {
  const std::string blocks = R"(
    block 0 { var x float32 [1] var y float32 [1] var z float32 [1]
      {} = tiny_while() {sub_block = block 1} }
    block 1 parent=0 { var middle float32 [1]
      {} = tiny_while() {sub_block = block 2}
      {} = tiny_while() {sub_block = block 3} }
    block 2 parent=1 { {Out: [middle]} = tiny_copy(X: [x]) }
    block 3 parent=1 { {Out: [y]} = tiny_add(X: [middle], Y: [z]) })";
  EXPECT_THAT(Uses(blocks), ElementsAre("0.x reads", "0.z reads", "0.y updates"));
  EXPECT_THAT(Uses(blocks, 1, 0), ElementsAre("0.x reads", "1.middle updates"));
  EXPECT_THAT(Uses(blocks, 1, 1), ElementsAre("1.middle reads", "0.z reads", "0.y updates"));
}

TEST(OpUses, FollowVariablesNotNames) {
  EXPECT_THAT(Uses(R"(
    block 0 { var x float32 [1] var y float32 [1]
      {} = tiny_while() {sub_block = block 1} }
    block 1 parent=0 { var x float32 [1]
      {Out: [x]} = tiny_copy(X: [x])
      {} = tiny_while() {sub_block = block 2} }
    block 2 parent=1 { var y float32 [1]
      {Out: [y]} = tiny_copy(X: [x]) })"),
              IsEmpty());
}

TEST(OpUses, UpdateArraysAndWhatASubBlockMayLeave) {
  EXPECT_THAT(Uses(R"(block 0 { var x float32 [1] var y float32 [1]
                        var a lod_tensor_array float32 [1] var rows selected_rows float32 [1]
                        {Out: [y, a, rows]} = tiny_while(X: [x]) })"),
              ElementsAre("0.x reads", "0.y replaces", "0.a updates", "0.rows replaces"));
  EXPECT_THAT(Uses(R"(block 0 { var x float32 [1]
                        {Out: [x]} = tiny_while() {sub_block = block 1} }
                      block 1 parent=0 {})"),
              ElementsAre("0.x updates"));
}

// The gradient of a loop body: block 3 is that of block 1, block 4 that of block 2 inside.
constexpr const char* kGradientBlocks = R"(
  block 0 { var x float32 [1] var dx float32 [1]
    {} = tiny_while() {sub_block = block 1}
    {} = tiny_while_grad() {sub_block = block 3} }
  block 1 parent=0 { var h float32 [1]
    {Out: [h]} = tiny_copy(X: [x])
    {} = tiny_while() {sub_block = block 2} }
  block 2 parent=1 { var inner float32 [1]
    {Out: [inner]} = tiny_copy(X: [h]) }
  block 3 parent=0 forward=1 { var dh float32 [1]
    {} = tiny_while_grad() {sub_block = block 4}
    {Out: [dx]} = tiny_add(X: [h], Y: [dh]) }
  block 4 parent=3 forward=2 {
    {Out: [dh]} = tiny_add(X: [inner], Y: [h]) })";

TEST(OpUses, OfAGradientBlockAreVariablesOfItsForwardBlock) {
  EXPECT_THAT(Uses(kGradientBlocks, 3, 1), ElementsAre("1.h reads", "3.dh reads", "0.dx replaces"));
}

TEST(OpUses, LeaveOutWhatTheBlockOfTheOpDoesNotSee) {
  // h belongs to the iterations of block 1, inner to those of block 2.
  EXPECT_THAT(Uses(kGradientBlocks, 0, 1), ElementsAre("0.dx updates"));
  EXPECT_THAT(Uses(kGradientBlocks, 3, 0), ElementsAre("1.h reads", "3.dh updates"));
}

TEST(OpUses, OfAGradientBlockMeanItsOwnVariablesFirst) {
  EXPECT_THAT(Uses(R"(
    block 0 { var x float32 [1] var y float32 [1] }
    block 1 parent=0 { var x float32 [1] var y float32 [1] }
    block 2 parent=0 forward=1 { var y float32 [1]
      {Out: [y]} = tiny_copy(X: [x]) })",
                   2),
              ElementsAre("1.x reads", "2.y replaces"));
}

TEST(OpUses, OfAnOpThatRunsItsForwardBlockAgainAreThoseFromBefore) {
  EXPECT_THAT(Uses(R"(
    block 0 { var x float32 [1] }
    block 1 parent=0 { var h float32 [1] var g float32 [1]
      {Out: [g]} = tiny_add(X: [x], Y: [h]) }
    block 2 parent=0 forward=1 {
      {} = tiny_while_grad(X: [h]) {sub_block = block 1} })",
                   2),
              ElementsAre("1.h reads", "0.x reads"));
}

TEST(OpUses, KnowAPersistableByItsName) {
  // Both blocks mean what the scope holds as w.
  EXPECT_THAT(Uses(R"(
    block 0 { var w float32 [1] persistable var x float32 [1]
      {Out: [x]} = tiny_while() {sub_block = block 1} }
    block 1 parent=0 { var w float32 [1] persistable var v float32 [1] persistable
      {Out: [w]} = tiny_copy(X: [v]) })"),
              ElementsAre("0.x updates", "1.v reads", "0.w updates"));
}

TEST(OpUses, KnowASideEffectInASubBlock) {
  const auto has_side_effect = [](const std::string& inner) {
    const auto program = Parse(R"(
      block 0 { {} = tiny_while() {sub_block = block 1} }
      block 1 parent=0 { {} = tiny_while() {sub_block = block 2} }
      block 2 parent=1 { var x float32 [1] )" +
                               inner + "}");
    return UsesOf(TinyRegistry(), *program->root(), 0).has_side_effect;
  };
  EXPECT_FALSE(has_side_effect("{Out: [x]} = tiny_copy(X: [x])"));
  EXPECT_TRUE(has_side_effect("{Out: [x]} = unknown(X: [x])"));
  OpDef printing = TinyRegistry().Get("tiny_copy");
  printing.type = "printing";
  printing.has_side_effect = true;
  if (TinyRegistry().Find("printing") == nullptr) TinyRegistry().Add(printing);
  EXPECT_TRUE(has_side_effect("{Out: [x]} = printing(X: [x])"));
}

TEST(OpUses, NeedAVariableForEachArgument) {
  EXPECT_EQ(MessageOf("block 0 { var x float32 [1] {Out: [y]} = tiny_copy(X: [x]) }",
                      ErrorCode::kNotFound),
            "tiny_copy (block 0, op #0): argument \"y\" has no variable");
  EXPECT_EQ(MessageOf("block 0 { {} = tiny_while() {sub_block = block 1} }"
                      "block 1 parent=0 { {} = tiny_while(X: [x]) {sub_block = block 2} }"
                      "block 2 parent=1 { var x float32 [1] }",
                      ErrorCode::kNotFound),
            "tiny_while (block 1, op #0): argument \"x\" has no variable");
  // Which the executor runs itself.
  EXPECT_THAT(Uses("block 0 { var x float32 [1] {Out: [x]} = feed(X: [feed]) }"),
              ElementsAre("0.x replaces"));
}

TEST(OpUses, RefuseSubBlocksThatAreNotThere) {
  const auto message = [](const std::string& blocks) {
    return MessageOf("block 0 { {} = tiny_while() {sub_block = " + blocks + "} } block 1 {}");
  };
  const std::string where = "tiny_while (block 0, op #0): sub-block ";
  EXPECT_EQ(message("block 2"), where + "2 is outside [0, 1]");
  EXPECT_EQ(message("blocks [1, -1]"), where + "-1 is outside [0, 1]");
  EXPECT_EQ(message("block -2147483648"), where + "-2147483648 is outside [0, 1]");
}

TEST(OpUses, RefuseRecursion) {
  EXPECT_EQ(MessageOf("block 0 { {} = tiny_while() {sub_block = block 0} }"),
            "tiny_while (block 0, op #0): sub-block 0 contains the op itself");
  EXPECT_EQ(MessageOf("block 0 { {} = tiny_while() {sub_block = block 1} }"
                      "block 1 parent=0 { {} = tiny_while() {sub_block = block 2} }"
                      "block 2 parent=1 { {} = tiny_while() {sub_block = block 1} }"),
            "tiny_while (block 2, op #0): sub-block 1 contains the op itself");
}

// Each block names the next one `times` times, the last reads x.
std::unique_ptr<Program> Nest(int depth, int times) {
  auto program = std::make_unique<Program>();
  program->root()->CreateVar({.name = "x", .dims = {1}});
  for (int i = 0; i < depth; ++i) {
    Block* block = i == 0 ? program->root() : program->AppendBlock(i - 1);
    for (int j = 0; i + 1 < depth && j < times; ++j) {
      block->AppendOp(Op("tiny_while").SetAttr("sub_block", BlockIndex{i + 1}));
    }
    if (i + 1 == depth) block->AppendOp(Op("tiny_while").SetInput("X", {"x"}));
  }
  return program;
}

TEST(OpUses, EndWhateverTheNesting) {
  // 2^63 ways to the last block.
  EXPECT_THAT(Texts(UsesOf(TinyRegistry(), *Nest(64, 2)->root(), 0)), ElementsAre("0.x reads"));
  // Enough to run out of stack.
  const auto deep = Nest(100000, 1);
  EXPECT_THROW(UsesOf(TinyRegistry(), *deep->root(), 0), Error);
}

TEST(OpUses, EndWhateverTheForwardBlocks) {
  const auto program = Parse(R"(
    block 0 { var x float32 [1] }
    block 1 forward=2 { }
    block 2 parent=0 forward=1 { {} = tiny_while(X: [x]) }
    block 3 forward=3 { {} = tiny_while(X: [x]) })");
  EXPECT_THAT(Texts(UsesOf(TinyRegistry(), *program->block(2), 0)), ElementsAre("0.x reads"));
  EXPECT_THROW(UsesOf(TinyRegistry(), *program->block(3), 0), Error);
  program->block(3)->forward_block_index = 4;
  EXPECT_THROW(UsesOf(TinyRegistry(), *program->block(3), 0), Error);
}

// Gives arguments a variable in the root, which detached blocks don't see.
void DeclareArguments(Program* program) {
  for (size_t b = 0; b < program->block_count(); ++b) {
    for (const auto& op : program->block(static_cast<int32_t>(b))->ops()) {
      std::vector<std::string> names = op->InputNames();
      for (std::string& name : op->OutputNames()) names.push_back(std::move(name));
      for (const std::string& name : names) {
        if (name.empty() || program->root()->FindLocalVar(name) != nullptr) continue;
        program->root()->CreateVar({.name = name});
      }
    }
  }
}

TEST(OpUses, AreThereOrRefusedForAnyProgram) {
  int refused = 0;
  int answered = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    const auto program = RandomProgram(seed);
    DeclareArguments(program.get());
    for (size_t b = 0; b < program->block_count(); ++b) {
      const Block& block = *program->block(static_cast<int32_t>(b));
      for (size_t i = 0; i < block.ops().size(); ++i) {
        try {
          const OpUses uses = UsesOf(TinyRegistry(), block, i);
          answered += uses.vars.empty() ? 0 : 1;
        } catch (const Error&) {
          ++refused;
        }
      }
    }
  }
  EXPECT_GT(answered, 1000);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace skiff
