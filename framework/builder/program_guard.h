// Where layer functions append: the main and the startup program of this thread, and the name
// scopes that mark the ops made inside them.
//
// All state is per thread. Guards nest like the C++ scopes that hold them.
#pragma once

#include <string>

#include "framework/ir/api/program.h"

namespace skiff {

// The programs of the innermost ProgramGuard; without one, two programs that live as long as the
// thread.
Program& DefaultMainProgram();
Program& DefaultStartupProgram();

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
  ir::Block* previous_block_;
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

}  // namespace skiff
