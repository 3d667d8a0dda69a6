#include "framework/ir/restored_program.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "framework/ir/text.h"

namespace skiff {
namespace {

std::unique_ptr<Program> TwoOps() {
  auto program = std::make_unique<Program>();
  Block* root = program->root();
  for (const char* name : {"x", "y", "z"}) root->CreateVar({.name = name});
  root->AppendOp(Op("tanh"))->SetInput("X", {"x"}).SetOutput("Out", {"y"});
  root->AppendOp(Op("sigmoid"))->SetInput("X", {"y"}).SetOutput("Out", {"z"});
  return program;
}

// Changes, adds and removes ops and variables.
void Change(Program* program) {
  Block* root = program->root();
  root->RemoveOps(0, 1);
  root->RemoveVars({"z"});
  root->CreateVar({.name = "added"});
  root->AppendOp(Op("added"));
  root->GetVar("x")->dtype = DType::kBFloat16;
}

TEST(RestoredProgram, TakesBackWhatChanged) {
  const std::unique_ptr<Program> program = TwoOps();
  const std::string before = PrintProgram(*program);
  const Var* x = program->root()->GetVar("x");
  {
    const RestoredProgram restored(program.get());
    Change(program.get());
    EXPECT_NE(PrintProgram(*program), before);
  }
  EXPECT_EQ(PrintProgram(*program), before);
  EXPECT_EQ(program->root()->GetVar("x"), x);
}

TEST(RestoredProgram, LeavesAProgramThatIsToStay) {
  const std::unique_ptr<Program> program = TwoOps();
  std::string changed;
  {
    RestoredProgram restored(program.get());
    Change(program.get());
    changed = PrintProgram(*program);
    restored.Stay();
  }
  EXPECT_EQ(PrintProgram(*program), changed);
}

}  // namespace
}  // namespace skiff
