// Tensors that lie on each other.
#pragma once

#include "framework/plan/plan.h"
#include "framework/tensor/scope.h"

namespace skiff {

// Whether a byte belongs to both.
bool ShareBytes(const Tensor& a, const Tensor& b);

// Error (kFailedPrecondition) if two variables of the plan share bytes in the scope and the plan
// writes one of them, which would change the other. All of them must be in the scope.
void CheckScopeOverlap(const Plan& plan, Scope& scope);

}  // namespace skiff
