#include "framework/builder/program_guard.h"

#include <gtest/gtest.h>

#include "framework/base/error.h"
#include "framework/builder/current_block.h"
#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/nn.h"
#include "framework/ir/op_role.h"
#include "framework/ir/program.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

TEST(ProgramGuard, NestsAndRestores) {
  Program main, startup, inner_main, inner_startup;
  Program* before = &DefaultMainProgram();
  {
    const ProgramGuard outer(&main, &startup);
    EXPECT_EQ(&DefaultMainProgram(), &main);
    {
      const ProgramGuard inner(&inner_main, &inner_startup);
      EXPECT_EQ(&DefaultStartupProgram(), &inner_startup);
      EXPECT_EQ(&CurrentBlock(), inner_main.root());
    }
    EXPECT_EQ(&DefaultMainProgram(), &main);
    EXPECT_EQ(&DefaultStartupProgram(), &startup);
  }
  EXPECT_EQ(&DefaultMainProgram(), before);
}

TEST(ProgramGuard, RefusesOneProgramForBoth) {
  Program program;
  Program* const before = &DefaultMainProgram();
  for (Program* startup : {&program, static_cast<Program*>(nullptr)}) {
    EXPECT_EQ(InvalidArgumentText([&] { ProgramGuard guard(&program, startup); }),
              "ProgramGuard: expected two programs, one for the model and one for its startup");
    EXPECT_EQ(&DefaultMainProgram(), before);
  }
}

TEST(ProgramGuard, KeepsTheSeed) {
  Program main, startup;
  main.seed = 42;
  const ProgramGuard guard(&main, &startup);
  layers::Data("x", {2});
  EXPECT_EQ(DefaultMainProgram().seed, 42u);
  EXPECT_EQ(main.Clone()->seed, 42u);
}

TEST(BlockGuard, AppendsToASubBlock) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable x = layers::Data("x", {2});
  Block* block = main.AppendBlock(0);
  {
    const BlockGuard open(block);
    const Variable y = layers::Scale(x, {.scale = 2.0f});
    EXPECT_EQ(y.block(), block);
  }
  EXPECT_EQ(block->ops().size(), 1u);
  EXPECT_TRUE(main.root()->ops().empty());
  Program other;
  for (Block* foreign : {other.root(), static_cast<Block*>(nullptr)}) {
    EXPECT_EQ(InvalidArgumentText([&] { BlockGuard guard(foreign); }),
              "BlockGuard: expected a block of the default main program");
  }
}

TEST(NameScope, MarksTheOpsMadeInside) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable x = layers::Data("x", {2});
  {
    const NameScope encoder("encoder");
    const NameScope layer("layer_0");
    layers::Scale(x, {.scale = 2.0f});
  }
  layers::Scale(x, {.scale = 2.0f});
  const auto& ops = main.root()->ops();
  EXPECT_EQ(ops[0]->Attr<std::string>(kOpNamescopeAttr), "/encoder/layer_0/");
  EXPECT_FALSE(ops[1]->HasAttr(kOpNamescopeAttr));
  for (const char* name : {"a/b", ""}) {
    EXPECT_EQ(
        InvalidArgumentText([&] { NameScope scope(name); }),
        StrCat("NameScope: \"", name, "\" is no name: it must not be empty nor have a slash"));
  }
}

TEST(NameScope, MarksNoStartupOp) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable x = layers::Data("x", {-1, 2});
  {
    const NameScope encoder("encoder");
    const OpRoleGuard role(kRoleOptimize);
    layers::Fc(x, 3);
  }
  ASSERT_EQ(main.root()->ops().size(), 2u);
  for (const auto& op : main.root()->ops()) {
    EXPECT_EQ(op->Attr<std::string>(kOpNamescopeAttr), "/encoder/");
    EXPECT_EQ(op->role(), kRoleOptimize);
  }
  ASSERT_EQ(startup.root()->ops().size(), 2u);
  for (const auto& op : startup.root()->ops()) {
    EXPECT_FALSE(op->HasAttr(kOpNamescopeAttr)) << op->type;
    EXPECT_EQ(op->role(), kRoleForward) << op->type;
  }
}

TEST(OpRoleGuard, GivesOpsItsRole) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable x = layers::Data("x", {2});
  {
    const OpRoleGuard role(kRoleLRSched);
    layers::Scale(x, {.scale = 2.0f});
  }
  layers::Scale(x, {.scale = 2.0f});
  EXPECT_EQ(main.root()->ops()[0]->role(), kRoleLRSched);
  EXPECT_EQ(main.root()->ops()[1]->role(), kRoleForward);
}

}  // namespace
}  // namespace skiff
