// Which ops of a program update parameters.
#pragma once

#include "framework/ir/program.h"
#include "framework/op/registry.h"

namespace skiff {

// Returns whether the op updates parameters, whatever its role; false for an unknown op.
bool IsParameterUpdate(const OpRegistry& registry, const Op& op);

// Returns whether an op of any block updates parameters.
bool HasUpdates(const OpRegistry& registry, const Program& program);

}  // namespace skiff
