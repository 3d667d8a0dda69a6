// The names that the ops of a program use, in all of its blocks.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "framework/ir/program.h"

namespace skiff {

// Returns the names that ops read. Leaves out ops with one of the roles `roles_left_out`
// (op_role.h).
std::set<std::string> NamesRead(const Program& program, int32_t roles_left_out = 0);
// Returns the names that ops write.
std::set<std::string> NamesWritten(const Program& program);

}  // namespace skiff
