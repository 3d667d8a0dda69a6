// Attributes whose type in a file isn't the one that the op's definition declares. Programs of old
// versions of Fluid have an int where a later definition has a bool, or where it has a float.
#pragma once

#include <string>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/op_def.h"
#include "framework/op/registry.h"

namespace skiff {

// Gives each attribute of the op the type that `def` declares, if the value fits the declared type:
// a number of any type that is equal in the other (0 and 1 are false and true; a double is rounded
// to a float within its range), such numbers in a list, or an empty list of anything. Returns a
// message for each attribute that it changes. Leaves other values to CheckOp, which refuses them;
// int and long (ints and longs) stay as they are, since definitions accept either.
std::vector<std::string> TakeDeclaredTypes(const OpDef& def, Op* op);

// Does so for all ops that the registry has.
void TakeDeclaredTypes(const OpRegistry& registry, Program* program);

}  // namespace skiff
