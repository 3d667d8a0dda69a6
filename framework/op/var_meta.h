#pragma once

#include "framework/ir/program.h"
#include "framework/op/op_context.h"

namespace skiff {

// Returns what a program declares about a variable. Selected rows are declared with the dims of the
// dense tensor they represent; the number of rows held is unknown. Throws Error if the rank exceeds
// Shape::kMaxRank.
TensorMeta MetaOf(const Var& var);

// Declares dims, dtype and LoD level of a variable, and whether it is selected rows.
void SetMeta(const TensorMeta& meta, Var* var);

}  // namespace skiff
