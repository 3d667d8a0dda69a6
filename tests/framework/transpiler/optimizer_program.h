// Programs of update ops in text, for tests of the passes that rewrite them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/ir/program.h"
#include "framework/ir/text.h"
#include "framework/op/registry.h"
#include "framework/transpiler/pass.h"

namespace skiff {

// Parameters w1, w2, w3 of [4] with gradients g1, g2, g3 and velocities v1, v2, v3, w64 of float64
// with its gradient, b1 and b2 of bfloat16 with gradients bg1 and bg2 and master weights m1 and m2
// of float32, rows, whose gradient is sparse, scalars rate and slow, temporaries t1 to t9 and n1 to
// n9, d1 and d2 of one float64 in the scope, k1 of one int64, and b, a bool. All ops have the role
// Optimize unless `ops` says otherwise.
inline std::unique_ptr<Program> OptimizerProgram(const std::string& ops) {
  std::string text = "program { block 0 {";
  for (const char* name : {"w1", "w2", "w3", "v1", "v2", "v3", "m1", "m2", "rows"}) {
    text += StrCat(" var ", name, " float32 [4] persistable");
  }
  for (const char* name :
       {"g1", "g2", "g3", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"}) {
    text += StrCat(" var ", name, " float32 [4]");
  }
  for (const char* name : {"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9"}) {
    text += StrCat(" var ", name, " float32 [1]");
  }
  for (const char* name : {"b1", "b2"}) {
    text += StrCat(" var ", name, " bfloat16 [4] persistable var ", name[0], "g", name[1],
                   " bfloat16 [4]");
  }
  for (const char* name : {"d1", "d2"}) text += StrCat(" var ", name, " float64 [1] persistable");
  text += " var k1 int64 [1]";
  text += " var w64 float64 [4] persistable var g64 float64 [4]";
  text += " var rate float32 [1] persistable var slow float32 [1] persistable";
  text += " var sparse selected_rows float32 [4] var b bool [1] ";
  auto program = ParseProgramText(text + ops + " } }");
  for (const auto& op : program->root()->ops()) {
    if (!op->HasAttr("op_role")) op->SetAttr("op_role", int32_t{2});
  }
  return program;
}

// The text of each op after the pass, without the role Optimize.
inline std::vector<std::string> OpsAfter(const ProgramPass& pass, const std::string& ops) {
  const auto program = OptimizerProgram(ops);
  pass.Apply(DefaultOpRegistry(), program.get());
  std::vector<std::string> texts;
  for (const auto& op : program->root()->ops()) {
    if (op->role() == 2) op->attrs.erase("op_role");
    texts.push_back(PrintOp(*op));
  }
  return texts;
}

// Returns the pass's report on a program of these ops.
inline PassReport ReportOf(const ProgramPass& pass, const std::string& ops) {
  return pass.Apply(DefaultOpRegistry(), OptimizerProgram(ops).get());
}

}  // namespace skiff
