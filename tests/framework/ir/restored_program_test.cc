#include "framework/ir/restored_program.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "framework/ir/text.h"
#include "tests/framework/ir/random_program.h"

namespace skiff {
namespace {

// Changes, adds and removes ops and variables.
void Change(Program* program) {
  Block* root = program->root();
  root->RemoveOps(0, root->ops().size() / 2);
  root->CreateVar({.name = "added"});
  root->AppendOp(Op("added"));
  root->vars().front()->dtype = DType::kBFloat16;
}

TEST(RestoredProgram, TakesBackWhatChanged) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const std::unique_ptr<Program> program = RandomProgram(seed);
    const std::string before = PrintProgram(*program);
    const Var* first = program->root()->vars().front().get();
    {
      const RestoredProgram restored(program.get());
      Change(program.get());
      EXPECT_NE(PrintProgram(*program), before);
    }
    EXPECT_EQ(PrintProgram(*program), before);
    EXPECT_EQ(program->root()->vars().front().get(), first);
  }
}

TEST(RestoredProgram, LeavesAProgramThatIsToStay) {
  const std::unique_ptr<Program> program = RandomProgram(1);
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
