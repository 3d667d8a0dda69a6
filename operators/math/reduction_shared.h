// What the ops that reduce over the axes `dim` have in common: attributes, shape rules,
// definitions.
#pragma once

#include <string>
#include <vector>

#include "framework/op/registry.h"
#include "operators/common/reduce.h"

namespace skiff {

// `dim`, `keep_dim`, `reduce_all`, `in_dtype` and `out_dtype`. Fluid declares the axes of some
// reductions as longs.
std::vector<AttrDef> ReductionAttributes(AttrType type_of_dim = AttrType::kInts);

// Whether each axis of X is reduced: all of them under reduce_all or without `dim`. Error for an
// axis that X doesn't have or that is listed twice.
std::vector<bool> ReducedAxes(const OpContext& context);
// X's shape without the reduced axes, or with dims of 1 there (keep_dim).
Shape ReducedShape(const OpContext& context);

// Shape rules. Out has `dtype`; in_dtype must be -1 or X's, out_dtype -1 or that one.
void InferReduction(OpContext& context, DType dtype);
void InferReductionGrad(OpContext& context);

// The walk over X of the op or of its gradient op; every shape must be known.
AxisReduction ReductionOf(const OpContext& context);
// Error if an output is made of no elements, for reductions that have no value for that.
void CheckSomethingIsReduced(const OpContext& context, const AxisReduction& reduction);

// Definitions of a reduction, to X's dtype, and of <type>_grad. `doc` is the formula.
// `forward_slots` are the slots of the forward op that the gradient op takes besides Out@GRAD, of X
// and Out.
OpDef ReductionDef(const std::string& type, const std::string& doc,
                   const std::vector<std::string>& forward_slots);
OpDef ReductionGradDef(const std::string& type, const std::string& doc,
                       const std::vector<std::string>& forward_slots, bool reads_x);

}  // namespace skiff
