#include "framework/analysis/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/base/error.h"
#include "framework/ir/text.h"
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

TEST(Verifier, FindsReadsBeforeTheFirstWrite) {
  EXPECT_THAT(Messages("{Out: [y]} = tiny_copy(X: [z])  {Out: [z]} = tiny_copy(X: [x])"),
              ElementsAre(HasSubstr("input \"z\" is read before anything writes it")));
  EXPECT_THAT(Messages("{Out: [y]} = tiny_copy(X: [x])", {.feeds = {}, .infer_feeds = false}),
              ElementsAre(HasSubstr("input \"x\" is read before anything writes it")));
  EXPECT_THAT(Messages("{Out: [y]} = tiny_copy(X: [x])", {.feeds = {"x"}, .infer_feeds = false}),
              IsEmpty());
}

TEST(Verifier, FindsArgumentsWithoutAVariable) {
  EXPECT_THAT(Messages("{Out: [q]} = tiny_copy(X: [x])"),
              ElementsAre(HasSubstr("output \"q\" has no variable")));
}

TEST(Verifier, FindsShapesAndDtypesThatTheOpDoesNotMake) {
  EXPECT_THAT(Messages("{Out: [s]} = tiny_copy(X: [w])"),
              ElementsAre(HasSubstr("declared as float32 [1], but the op makes float32 [3]")));
  EXPECT_THAT(Messages("{Out: [i]} = tiny_copy(X: [x])"),
              ElementsAre(HasSubstr("declared as int64 [-1], but the op makes float32 [-1]")));
}

TEST(Verifier, LooksIntoSubBlocks) {
  EXPECT_THAT(Messages("{Out: [y]} = tiny_copy(X: [x]) {sub_block = block 1}"),
              ElementsAre(HasSubstr("tiny_copy (block 1, op #0): input \"nothing\"")));
}

TEST(Verifier, FindsSubBlocksThatContainTheOpItself) {
  EXPECT_THAT(Messages("{Out: [y]} = tiny_copy(X: [x]) {sub_block = block 0}"),
              ElementsAre(HasSubstr("sub-block 0 contains the op itself")));
}

TEST(Verifier, ThrowsEveryMessageAtOnce) {
  OpRegistry registry;
  const auto program = ParseProgramText(R"(program { block 0 {
    {} = first() {} = second() } })");
  try {
    CheckProgram(registry, *program);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("first (block 0, op #0): unknown op \"first\"\nsecond"));
  }
}

}  // namespace
}  // namespace skiff
