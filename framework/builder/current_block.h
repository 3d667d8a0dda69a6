// The block that layers append to, and the marks of the ops that they make there.
//
// All state is per thread. Guards nest like the C++ scopes that hold them.
#pragma once

#include <cstdint>
#include <string>

#include "framework/builder/program_guard.h"
#include "framework/ir/program.h"

namespace skiff {

// The block of the main program that layers append to: its root, unless a BlockGuard is open.
Block& CurrentBlock();

// Makes `block`, a block of the default main program, the current block.
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
