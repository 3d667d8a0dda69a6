// Where layer functions append: the main and the startup program of this thread, and the scopes
// that mark the ops made inside them.
//
// All state is per thread. Guards nest like the C++ scopes that hold them.
#pragma once

#include <cstdint>
#include <string>

#include "framework/ir/program.h"

namespace skiff {

// The programs of the innermost ProgramGuard; without one, two programs that live as long as the
// thread.
Program& DefaultMainProgram();
Program& DefaultStartupProgram();

// The block of the main program that layers append to: its root, unless a BlockGuard is open.
Block& CurrentBlock();

// Makes `main` and `startup` the default programs. Both outlive the guard.
class ProgramGuard {
 public:
  // Throws an Error (kInvalidArgument) if one is null or both are the same.
  ProgramGuard(Program* main, Program* startup);
  ~ProgramGuard();
  ProgramGuard(const ProgramGuard&) = delete;
  ProgramGuard& operator=(const ProgramGuard&) = delete;

 private:
  Program* previous_main_;
  Program* previous_startup_;
  Block* previous_block_;
};

// Makes `block`, one of the default main program, the current block.
class BlockGuard {
 public:
  // Throws an Error (kInvalidArgument) if `block` isn't of the default main program.
  explicit BlockGuard(Block* block);
  ~BlockGuard();
  BlockGuard(const BlockGuard&) = delete;
  BlockGuard& operator=(const BlockGuard&) = delete;

 private:
  Block* previous_;
};

// Ops made inside carry `op_namescope` = "/outer/name/", which messages and dumps show.
class NameScope {
 public:
  // Throws an Error (kInvalidArgument) if `name` is empty or has a slash.
  explicit NameScope(const std::string& name);
  ~NameScope();
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;

 private:
  std::string previous_;
};

// Ops made inside carry this op_role (framework/ir/op_role.h).
class OpRoleGuard {
 public:
  explicit OpRoleGuard(int32_t role);
  ~OpRoleGuard();
  OpRoleGuard(const OpRoleGuard&) = delete;
  OpRoleGuard& operator=(const OpRoleGuard&) = delete;

 private:
  int32_t previous_;
};

// Returns "/encoder/layer_0/", say; an empty text outside of every NameScope.
const std::string& CurrentNameScope();
int32_t CurrentOpRole();

}  // namespace skiff
