#include "framework/builder/program_guard.h"

#include "framework/base/error.h"
#include "framework/builder/current_block.h"
#include "framework/ir/op_role.h"
#include "framework/ir/program.h"

namespace skiff {
namespace {

struct BuildState {
  Program own_main;
  Program own_startup;
  Program* main = &own_main;
  Program* startup = &own_startup;
  Block* block = nullptr;  // nullptr: the root of main
  std::string name_scope;
  int32_t op_role = kRoleForward;
};

BuildState& State() {
  // Per thread, so that threads can build programs at the same time without locks.
  thread_local BuildState state;
  return state;
}

}  // namespace

Program& DefaultMainProgram() { return *State().main; }
Program& DefaultStartupProgram() { return *State().startup; }

Block& CurrentBlock() {
  const BuildState& state = State();
  return state.block == nullptr ? *state.main->root() : *state.block;
}

ProgramGuard::ProgramGuard(Program* main, Program* startup)
    : previous_main_(State().main),
      previous_startup_(State().startup),
      previous_block_(State().block) {
  SKIFF_ENFORCE(main != nullptr && startup != nullptr && main != startup, kInvalidArgument,
                "ProgramGuard: expected two programs, one for the model and one for its startup");
  State().main = main;
  State().startup = startup;
  State().block = nullptr;
}

ProgramGuard::~ProgramGuard() {
  State().main = previous_main_;
  State().startup = previous_startup_;
  State().block = previous_block_;
}

BlockGuard::BlockGuard(Block* block) : previous_(State().block) {
  SKIFF_ENFORCE(block != nullptr && block->program() == State().main, kInvalidArgument,
                "BlockGuard: expected a block of the default main program");
  State().block = block;
}

BlockGuard::~BlockGuard() { State().block = previous_; }

NameScope::NameScope(const std::string& name) : previous_(State().name_scope) {
  SKIFF_ENFORCE(!name.empty() && name.find('/') == std::string::npos, kInvalidArgument,
                "NameScope: \"", name, "\" is no name: it must not be empty nor have a slash");
  State().name_scope = StrCat(previous_.empty() ? "/" : previous_, name, "/");
}

NameScope::~NameScope() { State().name_scope = previous_; }

OpRoleGuard::OpRoleGuard(int32_t role) : previous_(State().op_role) { State().op_role = role; }
OpRoleGuard::~OpRoleGuard() { State().op_role = previous_; }

const std::string& CurrentNameScope() { return State().name_scope; }
int32_t CurrentOpRole() { return State().op_role; }

}  // namespace skiff
