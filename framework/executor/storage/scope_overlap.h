// Finds tensors that share memory.
#pragma once

#include "framework/plan/plan.h"
#include "framework/tensor/scope.h"

namespace skiff {

// Returns whether a byte belongs to both tensors.
bool ShareBytes(const Tensor& a, const Tensor& b);

// Throws an Error (kFailedPrecondition) if two variables of the plan share bytes in the scope and
// the plan writes either, which would change the other. The scope must have all variables of the
// plan.
void CheckScopeOverlap(const Plan& plan, Scope& scope);

}  // namespace skiff
