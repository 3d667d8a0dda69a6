// The scope of a clone of a compiled program.
#pragma once

#include <memory>

#include "framework/ir/program.h"
#include "framework/op/registry.h"
#include "framework/tensor/scope.h"

namespace skiff {

// Throws an Error (kFailedPrecondition) that names the op and the variable if the program writes a
// variable of the scope, which clones would share. Arrays are no such variables.
void CheckWritesNoVariable(const OpRegistry& registry, const Program& program);

// Returns a scope with those variables of `scope` that the program has, and the step counter, in
// the same memory. Variables that decide where kernels read and write (DecidingVariables) are
// copies in the new scope.
std::unique_ptr<Scope> ScopeOfClone(const OpRegistry& registry, const Scope& scope,
                                    const Program& program);

}  // namespace skiff
