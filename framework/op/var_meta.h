#pragma once

#include "framework/ir/program.h"
#include "framework/op/op_context.h"

namespace skiff {

// What a program declares of a variable. Error for a rank that no shape has. Selected rows are
// declared with the dims of the dense tensor that they stand for; how many there are is unknown.
TensorMeta MetaOf(const Var& var);

// Declares the variable so: dims, dtype, LoD level, and whether it is selected rows.
void SetMeta(const TensorMeta& meta, Var* var);

}  // namespace skiff
