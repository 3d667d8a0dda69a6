#pragma once

#include "framework/ir/program.h"
#include "framework/op/op_context.h"

namespace skiff {

// What a program declares of a variable. Error for a rank that no shape has.
TensorMeta MetaOf(const Var& var);

}  // namespace skiff
