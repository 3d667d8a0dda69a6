#include <gtest/gtest.h>

#include <algorithm>

#include "framework/base/error.h"
#include "framework/ir/text.h"
#include "tests/framework/ir/random_program.h"

namespace skiff {
namespace {

TEST(ProgramDot, DrawsOpsVariablesAndEdges) {
  const auto program = ParseProgramText(R"(
program {
  block 0 {
    var x float32 [-1, 4]
    param w float32 [4, 2] persistable
    var rows selected_rows float32 [4]
    {Out: [rows, "@EMPTY@"]} = mul(X: [x], Y: [w])
  }
})");
  EXPECT_EQ(PrintDot(*program), R"(digraph program {
  node [fontsize=10];
  edge [fontsize=8];
  var_0_0 [label="x\nfloat32 [-1, 4]", shape=ellipse];
  var_0_1 [label="w\nfloat32 [4, 2]", shape=ellipse, style=filled, fillcolor="#ffd27f"];
  var_0_2 [label="rows\nselected_rows float32 [4]", shape=ellipse];
  op_0_0 [label="mul", shape=box, style=filled, fillcolor="#e8e8e8"];
  var_0_0 -> op_0_0 [label="X"];
  var_0_1 -> op_0_0 [label="Y"];
  op_0_0 -> var_0_2 [label="Out"];
}
)");
}

TEST(ProgramDot, PutsSubBlocksIntoClustersOfTheirParents) {
  const auto program = ParseProgramText(R"(
program {
  block 0 { {} = while() {sub_block = block 1} }
  block 1 parent=0 { {} = f() {sub_block = block 2} }
  block 2 parent=1 {}
  block 3 parent=0 {}
})");
  EXPECT_EQ(PrintDot(*program), R"(digraph program {
  node [fontsize=10];
  edge [fontsize=8];
  op_0_0 [label="while", shape=box, style=filled, fillcolor="#e8e8e8"];
  subgraph cluster_1 {
  label="block 1";
  block_1 [shape=point];
  op_1_0 [label="f", shape=box, style=filled, fillcolor="#e8e8e8"];
  subgraph cluster_2 {
  label="block 2";
  block_2 [shape=point];
  }
  }
  subgraph cluster_3 {
  label="block 3";
  block_3 [shape=point];
  }
  op_0_0 -> block_1 [style=dashed];
  op_1_0 -> block_2 [style=dashed];
}
)");
}

TEST(ProgramDot, EscapesNames) {
  const auto program = ParseProgramText(
      R"(program { block 0 { var "a\"b\\c\nd" int32 [] {} = "}\";x"("]": []) } })");
  const std::string dot = PrintDot(*program);
  EXPECT_NE(dot.find(R"(label="a\\\"b\\\\c\\nd\nint32 []")"), std::string::npos) << dot;
  EXPECT_NE(dot.find(R"(label="}\\\";x")"), std::string::npos) << dot;
}

TEST(ProgramDot, ShowsVariablesThatAreNotDeclared) {
  const auto program =
      ParseProgramText("program { block 0 { {} = f(X: [ghost, ghost]) {} = g(X: [ghost]) } }");
  const std::string dot = PrintDot(*program);
  EXPECT_NE(dot.find("undeclared_0 [label=\"ghost\", shape=ellipse, style=dashed]"),
            std::string::npos);
  EXPECT_EQ(dot.find("undeclared_1"), std::string::npos);
}

TEST(ProgramDot, IgnoresSubBlocksThatAreNotThere) {
  const auto program =
      ParseProgramText("program { block 0 { {} = f() {a = block 7, b = block -1, c = block 0} } }");
  EXPECT_EQ(PrintDot(*program).find("dashed"), std::string::npos);
}

// Quotes of strings close, and braces outside them match.
bool IsBalanced(const std::string& dot) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < dot.size(); ++i) {
    if (in_string && dot[i] == '\\') {
      ++i;
    } else if (dot[i] == '"') {
      in_string = !in_string;
    } else if (!in_string) {
      depth += dot[i] == '{' ? 1 : dot[i] == '}' ? -1 : 0;
    }
  }
  return depth == 0 && !in_string;
}

TEST(ProgramDot, StaysWellFormedForAnyNames) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    EXPECT_TRUE(IsBalanced(PrintDot(*RandomProgram(seed)))) << "seed " << seed;
  }
}

TEST(ProgramDot, PrintsDeepNestingWithoutRecursion) {
  Program program;
  constexpr int kDepth = 20000;
  for (int i = 0; i < kDepth; ++i) program.AppendBlock(i);
  const std::string dot = PrintDot(program);
  EXPECT_EQ(std::count(dot.begin(), dot.end(), '{'), kDepth + 1);
}

}  // namespace
}  // namespace skiff
