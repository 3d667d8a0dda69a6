#include "framework/analysis/definitions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/ir/text.h"
#include "tests/framework/executor/tiny_ops.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DefinitionsTest : public ::testing::Test {
 protected:
  DefinitionsTest() { tiny::RegisterTinyOps(registry_); }

  // "x op 0..3 read by 1 3, updated by 2, captured": the variable, where its value comes from, from
  // when to when it lives, and why it outlives the block.
  static std::string Text(const Definition& definition) {
    constexpr std::array kOrigins = {"op", "feed", "scope", "forward", "captured", "unknown"};
    std::string text =
        StrCat(definition.var->name, " ", kOrigins.at(static_cast<size_t>(definition.origin)), " ",
               definition.first, "..", definition.last);
    if (!definition.readers.empty()) text += " read by " + Join(definition.readers, " ");
    if (!definition.updates.empty()) text += ", updated by " + Join(definition.updates, " ");
    const Outlives& outlives = definition.outlives;
    if (outlives.fetched) text += ", fetched";
    if (outlives.persistable) text += ", persistable";
    if (outlives.captured) text += ", captured";
    if (outlives.read_by_gradient) text += ", for the gradient";
    return text;
  }

  std::vector<std::string> TextsOf(const Program& program, int32_t block = 0,
                                   const DefinitionOptions& options = {}) const {
    std::vector<std::string> texts;
    const BlockDefinitions definitions = FindDefinitions(registry_, *program.block(block), options);
    for (const Definition& definition : definitions.all()) texts.push_back(Text(definition));
    return texts;
  }

  // Of a block of a program.
  std::vector<std::string> Definitions(const std::string& blocks, int32_t block = 0,
                                       const DefinitionOptions& options = {}) const {
    return TextsOf(*ParseProgramText("program {" + blocks + "}"), block, options);
  }

  // Of a root block with the variables a to d, w in the scope, an array, and these ops.
  std::vector<std::string> OfOps(const std::string& ops,
                                 const DefinitionOptions& options = {}) const {
    return Definitions(kVars + ops + "}", 0, options);
  }

  static inline const std::string kVars = R"(block 0 {
      var a float32 [1] var b float32 [1] var c float32 [1] var d float32 [1]
      var w float32 [1] persistable
      var array lod_tensor_array float32 [1] )";
  // d = a, if block 1 is run.
  static inline const std::string kMaybe = "{} = tiny_while() {sub_block = block 1} ";
  static inline const std::string kMaybeBody =
      "} block 1 parent=0 { {Out: [d]} = tiny_copy(X: [a]) ";

  OpRegistry registry_;
};

TEST_F(DefinitionsTest, AreTwoWhereAVariableIsWrittenTwice) {
  EXPECT_THAT(OfOps(R"({Out: [a]} = tiny_fill()
                       {Out: [b]} = tiny_copy(X: [a])
                       {Out: [a]} = tiny_fill()
                       {Out: [b]} = tiny_add(X: [a], Y: [b]))"),
              ElementsAre("a op 0..1 read by 1", "b op 1..3 read by 3", "a op 2..3 read by 3",
                          "b op 3..3"));
}

TEST_F(DefinitionsTest, AreTwoWhereAnOpWritesWhatItReads) {
  EXPECT_THAT(OfOps("{Out: [a]} = tiny_fill() {Out: [a]} = tiny_scale(X: [a])"),
              ElementsAre("a op 0..1 read by 1", "a op 1..1"));
}

TEST_F(DefinitionsTest, NameAReaderOnceHoweverOftenItReads) {
  EXPECT_THAT(OfOps("{Out: [a]} = tiny_fill() {Out: [b]} = tiny_add(X: [a], Y: [a])"),
              ElementsAre("a op 0..1 read by 1", "b op 1..1"));
}

TEST_F(DefinitionsTest, AreNotProlongedByReadsOfTheShape) {
  EXPECT_THAT(OfOps(R"({Out: [a]} = tiny_fill()
                       {Out: [b]} = tiny_copy(X: [a])
                       {Out: [c]} = tiny_ones_like(X: [a]))"),
              ElementsAre("a op 0..1 read by 1", "b op 1..1", "c op 2..2"));
}

// The ancestor's liveness left out the first op.
TEST_F(DefinitionsTest, CountTheFirstOp) {
  EXPECT_THAT(OfOps("{Out: [b]} = tiny_copy(X: [a]) {Out: [c]} = tiny_fill()", {.feeds = {"a"}}),
              ElementsAre("a feed -1..0 read by 0", "b op 0..0", "c op 1..1"));
}

TEST_F(DefinitionsTest, ComeFromFeedsWhetherTheseAreListedOrNot) {
  EXPECT_THAT(OfOps("{Out: [d]} = tiny_add(X: [b], Y: [c])", {.feeds = {"a", "c"}}),
              ElementsAre("a feed -1..-1", "c feed -1..0 read by 0", "b unknown -1..0 read by 0",
                          "d op 0..0"));
  EXPECT_THAT(OfOps(R"({Out: [a]} = feed(X: [feed])
                       {Out: [b]} = tiny_copy(X: [a]))",
                    {.feeds = {"a"}}),
              ElementsAre("a feed -1..1 read by 1", "b op 1..1"));
}

TEST_F(DefinitionsTest, LiveToTheEndWhereTheyAreFetched) {
  EXPECT_THAT(
      OfOps(R"({Out: [b]} = tiny_copy(X: [a])
                       {Out: [b]} = tiny_copy(X: [a])
                       {Out: [c]} = tiny_fill())",
            {.fetches = {"b", "a", "w", "b"}}),
      ElementsAre("a unknown -1..3 read by 0 1, fetched", "w scope -1..3, fetched, persistable",
                  "b op 0..0", "b op 1..3, fetched", "c op 2..2"));
}

TEST_F(DefinitionsTest, LiveToTheEndInTheScope) {
  EXPECT_THAT(OfOps(R"({Out: [a]} = tiny_copy(X: [w])
                       {ParamOut: [w]} = tiny_sgd(Param: [w], Grad: [a])
                       {Out: [b]} = tiny_fill())"),
              ElementsAre("w scope -1..1 read by 0 1", "a op 0..1 read by 1",
                          "w op 1..3, persistable", "b op 2..2"));
}

TEST_F(DefinitionsTest, OfTheOuterBlockLiveUntilASubBlockHasReadThem) {
  // The ancestor gave the memory of a learning rate away that only a sub-block read.
  EXPECT_THAT(OfOps(R"({Out: [a]} = tiny_fill()
                       {Out: [b]} = tiny_fill()
                       {} = tiny_while() {sub_block = block 1} }
                    block 1 parent=0 {
                       {} = tiny_while() {sub_block = block 2} }
                    block 2 parent=1 { var inner float32 [1]
                       {Out: [inner]} = tiny_copy(X: [a])
                       {Out: [inner]} = tiny_ones_like(X: [b]))"),
              ElementsAre("a op 0..2 read by 2", "b op 1..1"));
}

TEST_F(DefinitionsTest, AreNotEndedByAWriteThatMayNotHappen) {
  EXPECT_THAT(OfOps("{Out: [a]} = tiny_fill() {Out: [d]} = tiny_fill()" + kMaybe +
                    "{Out: [b]} = tiny_copy(X: [d])" + kMaybeBody),
              ElementsAre("a op 0..2 read by 2", "d op 1..3 read by 3, updated by 2", "b op 3..3"));
  // Nothing reads it, but it is written.
  EXPECT_THAT(OfOps("{Out: [d]} = tiny_fill()" + kMaybe + kMaybeBody, {.feeds = {"a"}}),
              ElementsAre("a feed -1..1 read by 1", "d op 0..1, updated by 1"));
}

TEST_F(DefinitionsTest, AreEndedByTheNextWriteThatDoesHappen) {
  EXPECT_THAT(OfOps("{Out: [a]} = tiny_fill()" + kMaybe + kMaybe +
                    "{Out: [d]} = tiny_copy(X: [d]) {Out: [b]} = tiny_copy(X: [d])" + kMaybeBody),
              ElementsAre("a op 0..2 read by 1 2", "d op 1..3 read by 3, updated by 1 2",
                          "d op 3..4 read by 4", "b op 4..4"));
}

TEST_F(DefinitionsTest, MayBeginWithAWriteThatMayNotHappen) {
  EXPECT_THAT(
      OfOps(kMaybe + "{Out: [b]} = tiny_copy(X: [d])" + kMaybeBody, {.feeds = {"a"}}),
      ElementsAre("a feed -1..0 read by 0", "d op 0..1 read by 1, updated by 0", "b op 1..1"));
  // Not of what comes from outside.
  EXPECT_THAT(OfOps("{} = tiny_while(X: [a]) {sub_block = block 1} }"
                    "block 1 parent=0 { {Out: [w]} = tiny_copy(X: [a])",
                    {.feeds = {"a"}}),
              ElementsAre("a feed -1..0 read by 0", "w scope -1..1, updated by 0, persistable"));
}

TEST_F(DefinitionsTest, OfAnArrayGrowWithEachWrite) {
  EXPECT_THAT(OfOps(R"({Out: [array]} = tiny_fill()
                       {Out: [array]} = tiny_fill()
                       {Out: [a]} = tiny_copy(X: [array]))"),
              ElementsAre("array op 0..2 read by 2, updated by 0 1", "a op 2..2"));
}

// A loop that counts a up by b; t lives in an iteration, and d is made there for what follows.
const char* const kLoop = R"(
    block 0 {
      var a float32 [1] var b float32 [1] var c float32 [1] var d float32 [1]
      {} = tiny_while() {sub_block = block 1} }
    block 1 parent=0 { var t float32 [1] var unused float32 [1]
      {Out: [t]} = tiny_add(X: [a], Y: [b])
      {Out: [a]} = tiny_copy(X: [t])
      {Out: [unused]} = tiny_copy(X: [t])
      {Out: [d]} = tiny_copy(X: [c])
      {Out: [d]} = tiny_copy(X: [c]) })";

TEST_F(DefinitionsTest, OfALoopBodyLiveToItsEndIfTheNextIterationSeesThem) {
  EXPECT_THAT(
      Definitions(kLoop, 1),
      ElementsAre("a captured -1..0 read by 0", "b captured -1..5 read by 0, captured",
                  "c captured -1..5 read by 3 4, captured", "t op 0..2 read by 1 2",
                  "a op 1..5, captured", "unused op 2..2", "d op 3..3", "d op 4..5, captured"));
}

TEST_F(DefinitionsTest, OfANestedLoopAreSeenFromEachBlock) {
  const std::string blocks = R"(
    block 0 { var a float32 [1] var b float32 [1]
      {Out: [a]} = tiny_fill()
      {} = tiny_while() {sub_block = block 1}
      {Out: [b]} = tiny_fill() }
    block 1 parent=0 { var m float32 [1]
      {Out: [m]} = tiny_fill()
      {} = tiny_while() {sub_block = block 2}
      {Out: [m]} = tiny_fill() }
    block 2 parent=1 { var t float32 [1]
      {Out: [t]} = tiny_add(X: [m], Y: [a])
      {Out: [m]} = tiny_copy(X: [t]) })";
  EXPECT_THAT(Definitions(blocks), ElementsAre("a op 0..1 read by 1", "b op 2..2"));
  EXPECT_THAT(Definitions(blocks, 1),
              ElementsAre("a captured -1..3 read by 1, captured",
                          "m op 0..1 read by 1, updated by 1", "m op 2..2"));
  EXPECT_THAT(Definitions(blocks, 2),
              ElementsAre("m captured -1..0 read by 0", "a captured -1..2 read by 0, captured",
                          "t op 0..1 read by 1", "m op 1..2, captured"));
}

TEST_F(DefinitionsTest, KeepVariablesOfOneNameApart) {
  const std::string blocks = R"(
    block 0 { var a float32 [1] var b float32 [1]
      {Out: [a]} = tiny_fill()
      {} = tiny_while() {sub_block = block 1}
      {Out: [b]} = tiny_copy(X: [a]) }
    block 1 parent=0 { var a float32 [1]
      {Out: [a]} = tiny_fill()
      {Out: [b]} = tiny_copy(X: [a]) })";
  EXPECT_THAT(Definitions(blocks),
              ElementsAre("a op 0..2 read by 2", "b op 1..1, updated by 1", "b op 2..2"));
  EXPECT_THAT(Definitions(blocks, 1), ElementsAre("a op 0..1 read by 1", "b op 1..2, captured"));
}

// Block 1 is a loop body, block 2 is another one that isn't differentiated, and block 3 is the
// gradient of block 1, although its parent is block 2: only the index of the forward block counts.
const char* const kGradient = R"(
    block 0 { var x float32 [1] var dx float32 [1] }
    block 1 parent=0 { var h float32 [1] var measured float32 [1] var unread float32 [1]
      {Out: [h]} = tiny_copy(X: [x])
      {Out: [measured]} = tiny_copy(X: [h])
      {Out: [unread]} = tiny_copy(X: [h])
      {Out: [h]} = tiny_copy(X: [h]) }
    block 2 parent=0 { var h float32 [1] var y float32 [1]
      {Out: [h]} = tiny_copy(X: [x])
      {Out: [y]} = tiny_copy(X: [h]) }
    block 3 parent=2 forward=1 { var dh float32 [1]
      {Out: [dh]} = tiny_ones_like(X: [measured])
      {Out: [dx]} = tiny_add(X: [h], Y: [dh])
      {Out: [dh]} = tiny_copy(X: [dx]) })";

TEST_F(DefinitionsTest, LiveToTheEndWhereTheGradientBlockReadsThem) {
  EXPECT_THAT(Definitions(kGradient, 1),
              ElementsAre("x captured -1..4 read by 0, captured", "h op 0..3 read by 1 2 3",
                          "measured op 1..1", "unread op 2..2", "h op 3..4, for the gradient"));
}

TEST_F(DefinitionsTest, BelongToAGradientBlockByItsForwardBlockNotItsParent) {
  EXPECT_THAT(Definitions(kGradient, 2), ElementsAre("x captured -1..2 read by 0, captured",
                                                     "h op 0..1 read by 1", "y op 1..1"));
}

TEST_F(DefinitionsTest, OfTheForwardBlockEndWithTheLastReadOfItsGradient) {
  EXPECT_THAT(Definitions(kGradient, 3),
              ElementsAre("measured forward -1..-1", "h forward -1..1 read by 1",
                          "dh op 0..1 read by 1", "dx op 1..3 read by 2, captured", "dh op 2..2"));
}

TEST_F(DefinitionsTest, OfTheForwardBlockLiveOnForItsOtherGradientBlock) {
  EXPECT_THAT(Definitions(std::string(kGradient) +
                              "block 4 parent=0 forward=1 { {Out: [dx]} = tiny_copy(X: [h]) }",
                          3),
              testing::Contains("h forward -1..3 read by 1, for the gradient"));
}

TEST_F(DefinitionsTest, LiveToTheEndWhereTheGradientOfAGradientReadsThem) {
  EXPECT_THAT(
      Definitions(std::string(kGradient) +
                      "block 4 parent=0 forward=3 { {Out: [dx]} = tiny_add(X: [dh], Y: [unread]) }",
                  1),
      testing::Contains("unread op 2..4, for the gradient"));
}

TEST_F(DefinitionsTest, LiveToTheEndWhereOnlyASubBlockOfTheGradientBlockReadsThem) {
  EXPECT_THAT(Definitions(R"(
    block 0 { var dx float32 [1] }
    block 1 parent=0 { var h float32 [1] {Out: [h]} = tiny_fill() }
    block 2 parent=0 forward=1 { {} = tiny_while() {sub_block = block 3} }
    block 3 parent=2 { {Out: [dx]} = tiny_copy(X: [h]) })",
                          1),
              ElementsAre("h op 0..1, for the gradient"));
}

TEST_F(DefinitionsTest, TellWhatAnOpFindsAndWhatItLeaves) {
  const auto program = ParseProgramText("program {" + kVars + "{Out: [d]} = tiny_fill()" + kMaybe +
                                        "{Out: [d]} = tiny_copy(X: [d])" + kMaybeBody + "} }");
  const Block& root = *program->root();
  const BlockDefinitions definitions = FindDefinitions(registry_, root);
  const Var* d = root.FindVar("d");
  EXPECT_EQ(definitions.Before(0, d), nullptr);
  EXPECT_EQ(definitions.Before(3, root.FindVar("c")), nullptr);
  const Definition* first = definitions.Before(1, d);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->first, 0);
  EXPECT_EQ(definitions.Before(2, d), first);
  const Definition* second = definitions.Before(3, d);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->first, 2);
  EXPECT_EQ(definitions.NextWrite(*first, 1), 1u);
  EXPECT_EQ(definitions.NextWrite(*first, 2), 2u);
  EXPECT_EQ(definitions.NextWrite(*second, 3), std::nullopt);
  const Definition* a = definitions.Before(0, root.FindVar("a"));
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->origin, Origin::kUnknown);
  EXPECT_EQ(a->block, &root);
}

// The ancestor walked sets in the order of their hashes, which differs between processes.
TEST_F(DefinitionsTest, AreTheSameForEveryCopyOfTheProgram) {
  std::string ops;
  for (int i = 0; i < 40; ++i) ops += StrCat("var v", i, " float32 [1] ");
  ops += "{Out: [a]} = tiny_while(X: [";
  for (int i = 39; i >= 0; --i) ops += StrCat("v", i, ", ");
  const auto program = ParseProgramText("program {" + kVars + ops + "w]) } }");
  const std::vector<std::string> once = TextsOf(*program);
  EXPECT_EQ(once.front(), "v39 unknown -1..0 read by 0");
  std::vector<std::unique_ptr<Program>> copies;
  for (int i = 0; i < 8; ++i) {
    copies.push_back(program->Clone());
    EXPECT_EQ(TextsOf(*copies.back()), once);
  }
}

TEST_F(DefinitionsTest, RefuseWhatIsNotThere) {
  const auto message = [&](const std::string& ops, const DefinitionOptions& options) {
    return ErrorText([&] { OfOps(ops, options); });
  };
  EXPECT_EQ(message("", {.feeds = {"z"}}), "feed \"z\": block 0 has no such variable");
  EXPECT_EQ(message("", {.fetches = {"z"}}), "fetch \"z\": block 0 has no such variable");
  EXPECT_THAT(message("{Out: [z]} = tiny_copy(X: [a])", {}), HasSubstr("\"z\" has no variable"));
  EXPECT_THAT(message("{} = tiny_while() {sub_block = block 0}", {}),
              HasSubstr("sub-block 0 contains the op itself"));
  EXPECT_THAT(message("} block 1 parent=0 forward=0 { {Out: [a]} = tiny_copy(X: [z])", {}),
              HasSubstr("tiny_copy (block 1, op #0): argument \"z\" has no variable"));
}

TEST_F(DefinitionsTest, EndWhateverTheForwardBlocks) {
  const std::string blocks = R"(
    block 0 { var x float32 [1] }
    block 1 parent=0 forward=2 { var y float32 [1] {Out: [y]} = tiny_copy(X: [x]) }
    block 2 parent=0 forward=1 { }
    block 3 parent=0 forward=3 { var z float32 [1] {Out: [z]} = tiny_copy(X: [x]) })";
  EXPECT_THAT(Definitions(blocks), IsEmpty());
  EXPECT_THAT(Definitions(blocks, 1),
              ElementsAre("x captured -1..1 read by 0, captured", "y op 0..0"));
  EXPECT_THAT(Definitions(blocks, 3),
              ElementsAre("x captured -1..1 read by 0, captured", "z op 0..0"));
}

}  // namespace
}  // namespace skiff
