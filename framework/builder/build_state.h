// Where the layer functions of this thread append ops, and how the functions mark ops.
// program_guard.h and current_block.h get and set this state.
#pragma once

#include <cstdint>
#include <string>

#include "framework/ir/op_role.h"
#include "framework/ir/program.h"

namespace skiff::internal {

struct BuildState {
  Program own_main;
  Program own_startup;
  Program* main = &own_main;
  Program* startup = &own_startup;
  Block* block = nullptr;  // nullptr: the root of main
  std::string name_scope;
  int32_t op_role = kRoleForward;
};

// Returns the state of the thread.
BuildState& TheBuildState();

}  // namespace skiff::internal
