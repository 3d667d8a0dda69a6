#include "framework/plan/plan_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "framework/base/error.h"
#include "tests/framework/executor/lowered_plan.h"
#include "tests/harness/error_text.h"
#include "tests/harness/foreign_locale.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using PlanTextTest = tiny::LoweredPlanTest;

constexpr const char* kLowered = R"(plan cpu reuse=none {
  value x#0 float32 [2] @feed
  value w#3 float32 [2] persistable @scope
  {Out: [a#1 float32 [2]]} = tiny_scale(X: [x#0]) {factor = 2.0}
  {Out: [b#2 float32 [2]]} = tiny_copy(X: [a#1])
  {ParamOut: [w#4 float32 [2] persistable @scope]} = tiny_sgd(Param: [w#3], Grad: [b#2])
  {Out: [y#5 float32 [2]]} = tiny_add(X: [b#2], Y: [b#2])
  {Out: [idle#6 float32 [2]]} = tiny_add(X: [y#5], Y: [b#2])
  feed [x#0]
  fetch [y#5, a#1]
}
)";

// Everything that a plan can say, in one text.
constexpr const char* kEverything = R"(plan "cuda:1" reuse=arena {
  value x#0 float32 [2, 16] @feed
  value "a name"#3 float32 [2, 16] lod=1 persistable @scope
  value rows#9 float32 [3, 4] selected_rows=100 @scope
  {Out: [a#1 float32 [2, 16] exclusive @0]} = tiny_scale(X: [x#0]) target {factor = 2.0} workspaces=[64 @128, 32 @192]
  {Out: [b#2 float32 [2, 16] checkpoint @a#1]} = tiny_copy(X: [a#1]) workspaces=[8, 4] position=7 id=40
  copy [c#4 float32 [2, 16] blocked=8 @256] from [b#2] position=7
  {Out: [z#7 float32 [2, 16] @320]} = tiny_add(X: [c#4], Y: ["a name"#3]) id=-1
  fused [f#6 float32 [2, 16] @512] from [a#1, b#2] elements=16 row_axis=1 parts=2 {
    {Out: [e#5 float32 [2, 16]]} = tiny_scale(X: [a#1]) position=9
    {Out: [f#6]} = tiny_add(X: [e#5], Y: [b#2])
  }
  feed [x#0]
  fetch [f#6, none]
  contiguous alignment=4 [a#1, rows#9]
  contiguous alignment=64 []
  bytes max_live=8 planned=72 unshared=100
}
)";

TEST_F(PlanTextTest, HasALineForEachInstruction) { EXPECT_EQ(PrintPlan(plan_), kLowered); }

TEST_F(PlanTextTest, IsTheSameInAForeignLocale) {
  plan_[ValueId(1)].offset = 1234567;
  plan_.unshared_bytes = plan_.planned_bytes = 12345678;
  const std::string text = PrintPlan(plan_);
  EXPECT_THAT(text, HasSubstr(" @1234567]"));
  const ForeignLocale locale(ForeignLocale::kCpp);
  EXPECT_EQ(PrintPlan(plan_), text);
}

TEST_F(PlanTextTest, ReadsBack) {
  for (const char* text : {kLowered, kEverything}) {
    EXPECT_EQ(PrintPlan(ParsePlan(registry_, text)), text);
  }
}

TEST_F(PlanTextTest, BecomesAPlanAgain) {
  const Plan plan = ParsePlan(registry_, kEverything);
  EXPECT_EQ(plan.place, Place::Cuda(1));
  EXPECT_EQ(plan.reuse, ReusePolicy::kArena);
  ASSERT_EQ(plan.values.size(), 10u);
  EXPECT_EQ(plan[ValueId(3)].name, "a name");
  EXPECT_EQ(plan[ValueId(3)].storage, Storage::kScope);
  EXPECT_TRUE(plan[ValueId(3)].meta.persistable);
  EXPECT_EQ(plan[ValueId(3)].meta.lod_level, 1);
  EXPECT_EQ(plan[ValueId(9)].meta.layout, Layout::SelectedRows(100));
  EXPECT_EQ(plan[ValueId(4)].meta.layout, Layout::Blocked(8));
  EXPECT_EQ(plan[ValueId(4)].offset, 256);
  EXPECT_FALSE(plan.fetches[1]) << "none";
  EXPECT_EQ(plan.StorageOf(ValueId(2)), ValueId(1));
  EXPECT_TRUE(plan[ValueId(1)].is_exclusive);
  EXPECT_TRUE(plan[ValueId(2)].is_checkpoint);

  ASSERT_EQ(plan.instructions.size(), 5u);
  const Instruction& scale = plan.instructions[0];
  EXPECT_EQ(scale.op->Attr<float>("factor"), 2.0f);
  EXPECT_TRUE(scale.op->is_target);
  EXPECT_THAT(scale.op->Input("X"), ElementsAre("x"));
  EXPECT_EQ(scale.def, &registry_.Get("tiny_scale"));
  EXPECT_THAT(scale.workspace_bytes, ElementsAre(64, 32));
  EXPECT_THAT(scale.workspace_offsets, ElementsAre(128, 192));
  EXPECT_THAT(plan.instructions[1].workspace_offsets, IsEmpty());
  EXPECT_EQ(plan.instructions[1].position, 7u);
  EXPECT_EQ(plan.instructions[1].op->id, 40);
  const Instruction& copy = plan.instructions[2];
  EXPECT_EQ(copy.kind, InstructionKind::kCopy);
  EXPECT_EQ(copy.op, plan.instructions[1].op) << "the one at its position";
  EXPECT_EQ(plan.instructions[3].op->id, -1);
  const Instruction& fused = plan.instructions[4];
  EXPECT_EQ(fused.blocks.elements, 16);
  EXPECT_EQ(fused.blocks.row_axis, 1);
  EXPECT_EQ(fused.blocks.part_count, 2);
  ASSERT_EQ(fused.members.size(), 2u);
  EXPECT_EQ(fused.op, fused.members[1].op);
  EXPECT_THAT(fused.members[1].inputs, ElementsAre(ValueId(5), ValueId(2)));
  EXPECT_THAT(plan.contiguous[0].values, ElementsAre(ValueId(1), ValueId(9)));
  EXPECT_EQ(plan.planned_bytes, 72);
}

constexpr const char* kTwoStreams = R"(plan cpu reuse=none {
  value x#0 float32 [2] @feed
  {Out: [a#1 float32 [2]]} = tiny_exchange(X: [x#0]) @comm(c0)
  {Out: [b#2 float32 [2]]} = tiny_copy(X: [x#0])
  {Out: [c#3 float32 [2]]} = tiny_exchange_copy(X: [b#2]) @comm(c1) workspaces=[64]
  {Out: [d#4 float32 [2]]} = tiny_copy(X: [a#1]) wait(c0)
  copy [e#5 float32 [2] blocked=8] from [c#3] wait(c1)
  feed [x#0]
  fetch [d#4, e#5]
}
)";

TEST_F(PlanTextTest, NumbersTheInstructionsOfTheCommunicationStream) {
  const Plan plan = ParsePlan(registry_, kTwoStreams);
  EXPECT_EQ(PrintPlan(plan), kTwoStreams);
  std::vector<int32_t> waits;
  for (const Instruction& instruction : plan.instructions) waits.push_back(instruction.waits_for);
  EXPECT_THAT(waits, ElementsAre(-1, -1, -1, 0, 1));
  EXPECT_EQ(plan.instructions[0].stream, PlanStream::kCommunication);
  EXPECT_EQ(plan.instructions[1].stream, PlanStream::kMain);
}

TEST_F(PlanTextTest, RefusesANumberThatTheCommunicationStreamDoesNotHave) {
  const auto refused = [&](std::string_view old_text, std::string_view new_text) {
    std::string text = kTwoStreams;
    text.replace(text.find(old_text), old_text.size(), new_text);
    return ErrorText([&] { ParsePlan(registry_, text); });
  };
  EXPECT_THAT(refused("@comm(c1)", "@comm(c2)"), HasSubstr("line 5, column 64: expected (c1)"));
  EXPECT_THAT(refused("wait(c0)", "wait(c2)"), HasSubstr("line 6, column 54: expected an instr"));
  EXPECT_THAT(refused("wait(c0)", "wait(c-1)"), HasSubstr("the number of an instruction in [0, "));
  EXPECT_THAT(refused("@comm(c0)", "@main(c0)"), HasSubstr("expected \"comm\""));
}

// The slots of a text may come in any order; a kernel counts those of the definition.
TEST_F(PlanTextTest, PutsArgumentsIntoTheOrderOfTheDefinition) {
  const Plan plan = ParsePlan(registry_, R"(plan cpu reuse=none {
    value x#0 float32 [2] @feed
    value w#1 float32 [2] @scope
    {Out: [y#2 float32 [2]]} = tiny_add(Y: [w#1], X: [x#0])
  })");
  EXPECT_THAT(plan.instructions[0].inputs, ElementsAre(ValueId(0), ValueId(1)));
}

struct Mistake {
  const char* old_text;
  const char* new_text;
  const char* message;
};

class PlanTextMistakes : public PlanTextTest, public ::testing::WithParamInterface<Mistake> {};

TEST_P(PlanTextMistakes, AreLocatedErrors) {
  std::string text = kEverything;
  const size_t found = text.find(GetParam().old_text);
  ASSERT_NE(found, std::string::npos);
  text.replace(found, std::string(GetParam().old_text).size(), GetParam().new_text);
  EXPECT_THAT(ErrorText([&] { ParsePlan(registry_, text); }), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Each, PlanTextMistakes,
    ::testing::Values(
        Mistake{"plan ", "program ", "line 1, column 1: expected \"plan\", found \"program "},
        Mistake{"\"cuda:1\"", "tpu", "line 1, column 6: "},
        Mistake{"reuse=arena", "reuse=all", "line 1, column 21: reuse policy \"all\": "},
        Mistake{"tiny_scale(X: [x#0])", "huge_scale(X: [x#0])",
                "line 5, column 47: unknown op \"huge_scale\""},
        Mistake{"tiny_scale(X: [x#0])", "tiny_scale(Z: [x#0])", "line 5, column 3: "},
        Mistake{"(X: [a#1]) workspaces", "(X: [a#1], X: [a#1]) workspaces",
                "slot \"X\" is there twice"},
        Mistake{"float32 [2, 16] exclusive", "float99 [2, 16] exclusive", "line 5, column 14: "},
        Mistake{"float32 [2, 16] exclusive", "float32 [2, 1125899906842624] exclusive",
                "line 5, column 22: "},
        Mistake{"float32 [2, 16] exclusive", "float32 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1] exclusive",
                "line 5, column 22: "},
        Mistake{"blocked=8", "blocked=0", "expected at least 2 channels in a block"},
        Mistake{"value x#0", "value x#9999999", "the index 9999999 is too large"},
        Mistake{"value x#0 float32 [2, 16] @feed\n", "", "value x#0 is declared nowhere"},
        Mistake{"[f#6]} = tiny_add", "[f#6 float32 [2]]} = tiny_add", "value #6 is declared twice"},
        Mistake{"fetch [f#6", "fetch [g#6", "value #6 is \"g\" here and \"f\" before"},
        Mistake{"exclusive @0]", "exclusive @b#2]", "is stored in itself"},
        Mistake{"[8, 4]", "[8, 4 @8]", "expected an offset for each workspace or for none"},
        Mistake{"from [b#2]", "from [b#2, a#1]",
                "a copy has one value on each side, found 1 and 2"},
        Mistake{"{Out: [e#5 float32 [2, 16]]} =", "copy", "expected an op, the member of a fused"},
        Mistake{"  feed", "  feeds", "expected an instruction"},
        Mistake{"unshared=100\n}", "unshared=100\n", "found the end of the text"},
        Mistake{"unshared=100\n}", "unshared=100\n} }", "expected the end of the text"}));

// A pass may have dropped the op that a copy was made for.
TEST_F(PlanTextTest, ACopyIsForTheOpAtItsPositionOrTheNearest) {
  std::string text = kEverything;
  const std::string copy = "[b#2] position=7";
  text.replace(text.find(copy), copy.size(), "[b#2] position=6");
  const Plan plan = ParsePlan(registry_, text);
  EXPECT_EQ(plan.instructions[2].op, plan.instructions[1].op);
  EXPECT_THAT(ErrorText([&] {
                ParsePlan(registry_, R"(plan cpu reuse=none {
                  value a#0 float32 [2] @feed
                  copy [b#1 float32 [2]] from [a#0]
                })");
              }),
              HasSubstr("line 3, column 24: a copy is for an op, and the plan has none"));
}

// Whatever is cut off, the rest is no plan, and an Error says so.
TEST_F(PlanTextTest, CutOffAnywhereIsAnError) {
  const std::string text = kEverything;
  for (size_t size = 0; size + 2 < text.size(); ++size) {
    EXPECT_THAT(ErrorText([&] { ParsePlan(registry_, text.substr(0, size)); }), StartsWith("line "))
        << text.substr(0, size);
  }
}

}  // namespace
}  // namespace skiff
